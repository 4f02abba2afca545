# The sorts, a list of their own beside the loops'.
target_sources(blitz_objects PRIVATE
    par/sort.c
    par/sort_cached.c
    par/sort_compare.c
    par/sort_radix.c
    par/sort_stable.c
    par/sort_strings.c
    par/sort_wide.c)
