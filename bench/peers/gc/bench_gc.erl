%% Erlang: one process does the work, message by message, with the default settings of its heap; what it keeps is an argument of its
%% loop. Compiled by erlc (to machine code, by the loader). The cases are those of bench/gc/cases.h, the kinds of cases those of
%% bench/tasks/tasks.h. A node is a tuple, a leaf {nil, nil}. An object of 32 bytes is a tuple of three words and its header. The map
%% is a map of the language: nothing in a process's heap can be changed in place. A full collection is garbage_collect().
%%
%% The clock of CPU time counts milliseconds, so a piece of a measurement lasts 100 ms at least. Single collections are timed by the
%% clock of the system, the best of a few.
-module(bench_gc).

-export([main/0, idler_begin/1, idler/0]).

-define(ALLOCS, 1000).
-define(BATCH, 100).
-define(UPDATE_DEPTH, 20).
-define(MAP, 1048576).
-define(IDLE, 200000).
-define(IDLE_STEP, 1000).
-define(PIECE_NS, 100000000).

%% ---- the frame ----

main() ->
    [Name | Options] = init:get_plain_arguments(),
    {_, Watch} = spawn_monitor(fun() -> io:format("~s ~.6g~n", [Name, measure(Name, Options)]) end),
    receive
        {'DOWN', Watch, process, _, normal} -> halt(0);
        {'DOWN', Watch, process, _, Why} ->
            io:format(standard_error, "~0p~n", [Why]),
            halt(1)
    end.

measure(Name, Options) ->
    [Case | _] = string:split(Name, ".p"),
    {Kind, Run, Ops} = maps:get(Case, cases()),
    case {Kind, [list_to_integer(N) || "--ops=" ++ N <- Options]} of
        {once, []} -> float(Run(Ops));
        {once, [Fixed]} -> float(Run(Fixed));
        {_, [Fixed]} -> Run(Fixed) / Fixed;
        {fixed, []} -> lists:min([Run(Ops) || _ <- lists:seq(1, 3)]) / Ops;
        {paced, []} -> paced(Run, 1024, piece_ns(Options))
    end.

piece_ns(Options) ->
    Given = [seconds(S) * 1.0e9 / 5 || "--seconds=" ++ S <- Options],
    lists:max([?PIECE_NS | Given]).

seconds(Text) ->
    try list_to_float(Text) catch error:badarg -> float(list_to_integer(Text)) end.

%% Double the work until it fills a piece; then the fastest of five.
paced(Run, Ops, Piece) ->
    case Run(Ops) of
        Ns when Ns < Piece -> paced(Run, 2 * Ops, Piece);
        Ns -> lists:min([Ns | [Run(Ops) || _ <- lists:seq(1, 4)]]) / Ops
    end.

now_ns() ->
    element(1, statistics(runtime)) * 1000000.

cases() ->
    #{"alloc-32" => {paced, fun(Ops) -> work(nothing, fun alloc/1, Ops, ?ALLOCS) end, 0},
      "tree-10" => {paced, fun(Ops) -> trees(10, Ops) end, 0},
      "tree-15" => {paced, fun(Ops) -> trees(15, Ops) end, 0},
      "tree-20" => {paced, fun(Ops) -> trees(20, Ops) end, 0},
      "tree-10-plain" => {paced, fun(Ops) -> trees(10, Ops) end, 0},
      "tree-15-plain" => {paced, fun(Ops) -> trees(15, Ops) end, 0},
      "tree-20-plain" => {paced, fun(Ops) -> trees(20, Ops) end, 0},
      "update" => {fixed, fun update/1, 100000},
      "update-plain" => {fixed, fun update/1, 100000},
      "map" => {fixed, fun map/1, 1000000},
      "pause-10k" => {once, fun(Ops) -> pause(10000, Ops) end, 50},
      "pause-100k" => {once, fun(Ops) -> pause(100000, Ops) end, 10},
      "pause-1m" => {once, fun(Ops) -> pause(1000000, Ops) end, 3},
      "idle" => {once, fun idle/1, ?IDLE}}.

%% ---- a process that works ----

%% Begin() makes what it keeps, Step(Kept) is the work of a message.
work(Begin, Step, Ops, Each) ->
    Messages = (Ops + Each - 1) div Each,
    Main = self(),
    Pid = spawn(fun() ->
        Kept = case Begin of nothing -> nothing; _ -> Begin() end,
        garbage_collect(),
        Main ! begun,
        receive {step, N} -> self() ! {step, N}, loop(Kept, Step, Main) end
    end),
    receive begun -> ok end,
    Began = now_ns(),
    Pid ! {step, Messages},
    receive done -> ok end,
    (now_ns() - Began) / (Messages * Each) * Ops.

loop(Kept, Step, Main) ->
    receive
        {step, 0} -> Main ! done, Kept;
        {step, N} ->
            Next = Step(Kept),
            self() ! {step, N - 1},
            loop(Next, Step, Main)
    end.

%% ---- objects, trees ----

alloc(Kept) -> alloc(Kept, ?ALLOCS, none).

alloc(Kept, 0, _) -> Kept;
alloc(Kept, N, _) -> alloc(Kept, N - 1, {N, N, N}).

%% The leaf has an argument: {nil, nil} alone would be one constant that all share.
make(0, Nil) -> {Nil, Nil};
make(Depth, Nil) -> {make(Depth - 1, Nil), make(Depth - 1, Nil)}.

depth({nil, nil}, Found) -> Found;
depth({Left, _}, Found) -> depth(Left, Found + 1).

trees(Depth, Ops) ->
    Step = fun(Kept) ->
        Depth = depth(make(Depth, nil), 0),
        Kept
    end,
    work(fun() -> make(Depth, nil) end, Step, Ops, (2 bsl Depth) - 1).

%% ---- updates by path copy ----

entries(_, 0) -> nil;
entries(From, Depth) ->
    Half = (1 bsl (Depth - 1)) - 1,
    {entries(From, Depth - 1), entries(From + Half + 1, Depth - 1), From + Half, 0}.

updated({Left, Right, Key, Value}, Sought) when Sought < Key ->
    {updated(Left, Sought), Right, Key, Value};
updated({Left, Right, Key, Value}, Sought) when Sought > Key ->
    {Left, updated(Right, Sought), Key, Value};
updated({Left, Right, Key, Value}, _) ->
    {Left, Right, Key, Value + 1}.

%% A generator whose numbers stay small: no allocation.
random(Seed) -> Seed * 16807 rem 2147483647.

update(Ops) ->
    Step = fun(Kept) -> updates(Kept, ?BATCH) end,
    work(fun() -> {entries(0, ?UPDATE_DEPTH), 1} end, Step, Ops, ?BATCH).

updates(Kept, 0) -> Kept;
updates({Root, Seed}, N) ->
    Next = random(Seed),
    updates({updated(Root, Next rem ((1 bsl ?UPDATE_DEPTH) - 1)), Next}, N - 1).

%% ---- a map ----

map(Ops) ->
    Begin = fun() -> {maps:from_list([{I, {I, 0, 0, 0}} || I <- lists:seq(0, ?MAP - 1)]), 1} end,
    work(Begin, fun(Kept) -> puts(Kept, ?BATCH) end, Ops, ?BATCH).

puts(Kept, 0) -> Kept;
puts({Map, Seed}, N) ->
    Next = random(Seed),
    Key = Next rem ?MAP,
    {Key, Value, _, _} = maps:get(Key, Map),
    puts({maps:put(Key, {Key, Value + 1, 0, 0}, Map), Next}, N - 1).

%% ---- full collections, in microseconds ----

pause(Nodes, Count) ->
    Main = self(),
    spawn(fun() ->
        Tree = heap_tree(1, Nodes),
        garbage_collect(),
        Times = [collect() || _ <- lists:seq(1, Count)],
        Main ! {best, lists:min(Times), element(3, Tree)}
    end),
    receive {best, Ns, 1} -> Ns / 1000 end.

collect() ->
    Began = erlang:monotonic_time(nanosecond),
    garbage_collect(),
    erlang:monotonic_time(nanosecond) - Began.

heap_tree(I, N) when I > N -> nil;
heap_tree(I, N) -> {heap_tree(2 * I, N), heap_tree(2 * I + 1, N), I, 0}.

%% ---- idle processes ----

%% A number out of /proc, in KiB.
kib(Key) ->
    {ok, Text} = file:read_file("/proc/" ++ os:getpid() ++ "/status"),
    {match, [N]} = re:run(Text, Key ++ ":\\s+(\\d+)", [{capture, all_but_first, list}]),
    list_to_integer(N).

memory() ->
    1024 * (kib("VmRSS") + kib("VmPTE")).

idler_begin(Born) ->
    counters:add(Born, 1, 1),
    erlang:hibernate(?MODULE, idler, []).

idler() ->
    receive _ -> idler() end.

idle(Count) ->
    Born = counters:new(1, []),
    Before = memory(),
    idle(0, Count, Born),
    (memory() - Before) / Count.

idle(Count, Count, _) -> ok;
idle(Made, Count, Born) ->
    [spawn(?MODULE, idler_begin, [Born]) || _ <- lists:seq(1, ?IDLE_STEP)],
    await_born(Born, Made + ?IDLE_STEP),
    idle(Made + ?IDLE_STEP, Count, Born).

await_born(Born, Count) ->
    case counters:get(Born, 1) of
        Count -> ok;
        _ -> erlang:yield(), await_born(Born, Count)
    end.
