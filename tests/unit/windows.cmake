# The test programs of this folder that are built for Windows: those that need no I/O, no signals and no simulation. What the others
# lack there: docs/platforms.md.
set(windows_nouns
    accept actor actor_memory actor_pause actor_shutdown ask ask_calls binary bits block broadcast chan_future
    chan_lock check children claim clock closed combine compare coro countdown ctx delay_queue deque entry fork
    frame fresh_memory futures gather group handle heap_type held host injector io_poll iter join join_set later
    lin lines list lock look map mpmc mpsc names near notify object_pool offload oneshot os_self outside overload
    pace par permits pin poll pressure promise quiet rate readylist receive receive_pressure receive_relate
    relate rng runq runq_tiny scope select select_order send slab sort_trouble stats supervisor supervisor_ask
    supervisor_limits supervisor_tree sync_property sync_scenes tasks term term_fuzz term_hostile term_struct
    tick token trace_story tracering turns unreachable version waker watch watch_value wheel wheel_bug word)
