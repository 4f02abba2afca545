/*
 * x.c - a list of short items is not one sentence, however many lines it has:
 *
 * I1  The head never passes the tail, and the tail never passes the head by more than the capacity
 * I2  Only the owner writes the tail, and every thread may advance the head with a compare and swap
 * - an item, which is long enough to be read at once, and which has no full stop at its end
 *
 *   state      WAKE       RUN       YIELD     PARK      EXIT     and a table of words is no sentence
 *   IDLE       QUEUED     BAD       BAD       BAD       BAD      nor is this row of it, with its words
 */
int x;
