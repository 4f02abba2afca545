struct bz_ring {
    int at;
};
