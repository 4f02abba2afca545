int bz_ring;
