struct bz_io_ring {
    int at;
};
