volatile int stop;
