/*
 * Ours. Every case runs in the first task of a runtime with as many procs as were asked for; that task sends the first message
 * and waits for the end. actors/cases.h says what each case is. Only public headers: what a user can have.
 */
#include "actors/lives.h"
#include "actors/messages.h"

static const struct tasks_case cases[] = {
    {"ping-pong", TASKS_PACED, case_ping_pong, 0},
    {"ring", TASKS_PACED, case_ring, 0},
    {"counting", TASKS_PACED, case_counting, 0},
    {"fan-in", TASKS_PACED, case_fan_in, 0},
    {"big", TASKS_PACED, case_big, 0},
    {"create", TASKS_PACED, case_create, 0},
    {"call", TASKS_PACED, case_call, 0},
    {"link", TASKS_PACED, case_link, 0},
    {"monitor", TASKS_PACED, case_monitor, 0},
    {"restart", TASKS_PACED, case_restart, 0},
    {"counting-peak", TASKS_ONCE, case_counting_peak, PEAK},
    {"fan-in-peak", TASKS_ONCE, case_fan_in_peak, PEAK},
    {"idle-64", TASKS_ONCE, case_idle_64, IDLE},
    {"idle-0", TASKS_ONCE, case_idle_0, IDLE},
};

int main(int argc, char **argv)
{
    return tasks_main(argc, argv, cases, sizeof cases / sizeof *cases, ours_start);
}
