struct bz_ring;
