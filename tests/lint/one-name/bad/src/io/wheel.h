/* another one */
struct bz_ring {
    int at;
};
