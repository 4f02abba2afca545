int bz_io_ring;
