# Control-flow protection (-fcf-protection=, x86).
#
# Indirect-branch tracking works: every place a context switch lands on begins with endbr64. Shadow stacks do
# not: each of our stacks would need a second one beside it, and the switch would have to change both. An
# object compiled with -fcf-protection=full or =return declares in an ELF note that it supports shadow stacks,
# and the loader trusts the note. So our objects are compiled without that note, whatever the user's flags
# are, and the loader leaves shadow stacks off. Landing pads stay.
include(CheckCSourceCompiles)
check_c_source_compiles("
#if !defined(__CET__) || !(__CET__ & 2)
#error not asked for
#endif
int main(void) { return 0; }" BLITZ_SHADOW_STACKS_ASKED)
if(BLITZ_SHADOW_STACKS_ASKED)
    message(STATUS "blitz: shadow stacks are refused, building with -fcf-protection=branch")
    target_compile_options(blitz_flags INTERFACE -fcf-protection=branch)
endif()
