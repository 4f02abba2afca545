void blitz_chan_recv_future_init(blitz_chan_future *f, blitz_chan *c, void *value);
void blitz_chan_send_future_init(blitz_chan_future *f, blitz_chan *c, const void *value);
void blitz_chan_hold_future_init(blitz_chan_future *f, blitz_chan *c);
void blitz_chan_drop_future_init(blitz_chan_future *f, blitz_chan *c);
