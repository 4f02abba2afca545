/*
 * options.c - the command line of a test program.
 */
#include "record.h"

#include <math.h>
#include <stdarg.h>

static const char help[] =
    "usage: %s [OPTION | NAME]...\n"
    "Run the cases whose name (noun.property) matches a NAME, which may hold * and ?;\n"
    "without a NAME, all. Each runs in a process of its own.\n"
    "\n"
    "  --list              name the cases instead; with -v, their places too\n"
    "  --seed=NUMBER       begin all randomness there (default: BLITZ_TEST_SEED, else another each "
    "time)\n"
    "  --repeat=N          run each case N times, each with a seed of its own\n"
    "  --jobs=N            run up to N cases at once (default 1; 0: one for each CPU)\n"
    "  --quick             do about a tenth of the work (as with BLITZ_TEST_QUICK=1, and from the\n"
    "                      Unix time in BLITZ_TEST_UNTIL on)\n"
    "  --time-limit=SECS   end each case after so long, instead of as it says\n"
    "  --stop              stop after the first failure\n"
    "  --gdb               on expiry, show the stacks as gdb sees them as well\n"
    "  --here              run one case in this very process, without a limit: for a debugger\n"
    "  -v, --verbose       also name what passes, and show what it printed\n"
    "  -h, --help          this text\n"
    "\n"
    "The last line is `N passed, N failed, N skipped`. The exit status is 0 if none failed, 1 if "
    "one\n"
    "did, 2 if the command line makes no sense.\n";

static const char *program;

static _Noreturn void complain(const char *format, ...) T_PRINTF(1, 2);

static _Noreturn void complain(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fprintf(stderr, "%s: ", program);
    vfprintf(stderr, format, args);
    fprintf(stderr, "; --help tells more\n");
    va_end(args);
    exit(2);
}

static uint64_t number(const char *name, const char *text, uint64_t max)
{
    char *end;

    errno = 0;
    unsigned long long value = strtoull(text, &end, 0);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0)
        complain("%s wants a number, not '%s'", name, text);
    if (value > max)
        complain("%s wants at most %llu, not %s", name, (unsigned long long)max, text);
    return value;
}

static double seconds(const char *name, const char *text)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end != '\0' || !isfinite(value) || value <= 0)
        complain("%s wants a number of seconds above 0, not '%s'", name, text);
    return value;
}

/* Thirty-two bits: enough, and short to type. */
static uint64_t fresh_seed(void)
{
    const char *given = getenv("BLITZ_TEST_SEED");
    if (given != NULL && given[0] != '\0')
        return number("BLITZ_TEST_SEED", given, UINT64_MAX);
    return t_any_number();
}

/* "--name=value": the value; NULL if it is not that option. */
static const char *value_of(const char *argument, const char *name)
{
    size_t size = strlen(name);

    if (strncmp(argument, name, size) != 0 || (argument[size] != '=' && argument[size] != '\0'))
        return NULL;
    if (argument[size] == '\0')
        complain("%s wants a value, as in %s=...", name, name);
    return argument + size + 1;
}

/* A stage of CI that is late asks for less of each case, not for fewer cases. */
static uint64_t quick_from(void)
{
    const char *quick = getenv("BLITZ_TEST_QUICK"), *until = getenv("BLITZ_TEST_UNTIL");

    if (quick != NULL && quick[0] != '\0' && strcmp(quick, "0") != 0)
        return 0;
    return until != NULL && until[0] != '\0' ? number("BLITZ_TEST_UNTIL", until, UINT64_MAX)
                                             : UINT64_MAX;
}

static bool flag(struct t_options *o, const char *argument)
{
    const struct {
        const char *name;
        bool *at;
    } flags[] = {{"--list", &o->list}, {"--stop", &o->stop},       {"--gdb", &o->gdb},
                 {"--here", &o->here}, {"--verbose", &o->verbose}, {"-v", &o->verbose}};

    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (strcmp(argument, flags[i].name) == 0)
            return *flags[i].at = true;
    return false;
}

static bool option(struct t_options *o, const char *argument)
{
    const char *value;

    if ((value = value_of(argument, "--seed")) != NULL)
        o->seed = number("--seed", value, UINT64_MAX);
    else if ((value = value_of(argument, "--repeat")) != NULL)
        o->repeat = (unsigned)number("--repeat", value, 1000000000);
    else if ((value = value_of(argument, "--jobs")) != NULL)
        o->jobs = (unsigned)number("--jobs", value, 1024);
    else if ((value = value_of(argument, "--time-limit")) != NULL)
        o->time_limit_s = seconds("--time-limit", value);
    else
        return false;
    return true;
}

static void settle(struct t_options *o)
{
    if (o->repeat == 0)
        complain("--repeat wants at least 1");
    if (o->jobs == 0)
        o->jobs = t_cpus();
    if (o->here && (o->filter_count != 1 || o->repeat != 1))
        complain("--here runs one case, once: name it");
}

void t_options_parse(struct t_options *o, int argc, char **argv)
{
    program = argv[0];
    *o = (struct t_options){.program = argv[0], .filters = argv + 1, .repeat = 1, .jobs = 1};
    o->quick_from = quick_from();
    o->seed = fresh_seed();
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) {
            printf(help, program);
            exit(0);
        }
        if (strcmp(argv[i], "--quick") == 0)
            o->quick_from = 0;
        else if (argv[i][0] != '-')
            o->filters[o->filter_count++] = argv[i]; /* they move to the front, in place */
        else if (!flag(o, argv[i]) && !option(o, argv[i]))
            complain("there is no option '%s'", argv[i]);
    }
    settle(o);
}
