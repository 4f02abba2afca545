%% Erlang: plain processes, compiled by erlc (to machine code, by the loader). The cases are those of bench/actors/cases.h, the
%% kinds of cases those of bench/tasks/tasks.h. Senders need no batches: a process is preempted when its reductions are used up.
%% A call is what gen_server does: a monitor whose reference is also the address of the reply. Crashes are under OTP's supervisor.
%% It keeps the times of all restarts of the last second in a list, so that each restart would take longer than the one before;
%% so a supervisor has a hundred crashes, and then the next one is started. An idle process hibernates.
%%
%% The clock of CPU time counts milliseconds, so a piece of a measurement lasts 100 ms at least.
-module(bench_actors).
-behaviour(supervisor).

-export([main/0, init/1, mortal_start/1]).
-export([passer/2, counter/3, sender/2, talker_begin/4, child/0, server/1, mortal/1, idler_begin/2, idler/1]).

-define(RING, 100).
-define(SENDERS, 100).
-define(BATCH, 100).
-define(BIG, 120).
-define(PEAK, 2000000).
-define(IDLE, 1000000).
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
    [Case | Procs] = string:split(Name, ".p"),
    put(procs, case Procs of [] -> 1; [N] -> list_to_integer(N) end),
    {Kind, Run, Ops} = maps:get(Case, cases()),
    case {Kind, [list_to_integer(N) || "--ops=" ++ N <- Options]} of
        {once, []} -> float(Run(Ops));
        {once, [Fixed]} -> float(Run(Fixed));
        {paced, [Fixed]} -> Run(Fixed) / Fixed;
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

%% CPU time with one worker, the clock with more.
now_ns() ->
    case get(procs) of
        1 -> element(1, statistics(runtime)) * 1000000;
        _ -> erlang:monotonic_time(nanosecond)
    end.

done_since(Began) ->
    receive done -> now_ns() - Began end.

stop(Pids) ->
    [exit(Pid, kill) || Pid <- Pids],
    [begin
         Ref = monitor(process, Pid),
         receive {'DOWN', Ref, process, _, _} -> ok end
     end || Pid <- Pids].

cases() ->
    #{"ping-pong" => {paced, fun(Ops) -> around(Ops, 2) end, 0},
      "ring" => {paced, fun(Ops) -> around(Ops, ?RING) end, 0},
      "counting" => {paced, fun(Ops) -> fan_in(Ops, 1) end, 0},
      "fan-in" => {paced, fun(Ops) -> fan_in(Ops, ?SENDERS) end, 0},
      "big" => {paced, fun big/1, 0},
      "create" => {paced, fun create/1, 0},
      "call" => {paced, fun call/1, 0},
      "link" => {paced, fun link_pairs/1, 0},
      "monitor" => {paced, fun monitor_pairs/1, 0},
      "restart" => {paced, fun restart/1, 0},
      "counting-peak" => {once, fun(Ops) -> fan_in(Ops, 1), kib("VmHWM") / 1024 end, ?PEAK},
      "fan-in-peak" => {once, fun(Ops) -> fan_in(Ops, ?SENDERS), kib("VmHWM") / 1024 end, ?PEAK},
      "idle-64" => {once, fun(Ops) -> idle(Ops, 7) end, ?IDLE},
      "idle-0" => {once, fun(Ops) -> idle(Ops, 0) end, ?IDLE}}.

%% ---- ping-pong and ring ----

passer(Next, Main) ->
    receive
        {token, 0} ->
            Main ! done,
            passer(Next, Main);
        {token, Left} ->
            Next ! {token, Left - 1},
            passer(Next, Main);
        {next, Other} ->
            passer(Other, Main)
    end.

around(Hops, Count) ->
    First = spawn(?MODULE, passer, [none, self()]),
    Others = chain(Count - 1, First, []),
    First ! {next, hd(Others)},
    Began = now_ns(),
    First ! {token, Hops},
    Ns = done_since(Began),
    stop([First | Others]),
    Ns.

chain(0, _, Pids) -> Pids;
chain(Count, Next, Pids) ->
    Pid = spawn(?MODULE, passer, [Next, self()]),
    chain(Count - 1, Pid, [Pid | Pids]).

%% ---- counting and fan-in ----

counter(Total, Total, Main) ->
    Main ! done;
counter(Sum, Total, Main) ->
    receive {add, N} -> counter(Sum + N, Total, Main) end.

sender(_, 0) -> ok;
sender(To, Left) ->
    To ! {add, 1},
    sender(To, Left - 1).

fan_in(Ops, Count) ->
    Each = Ops div Count + 1,
    Total = Each * Count,
    Began = now_ns(),
    To = spawn(?MODULE, counter, [0, Total, self()]),
    [spawn(?MODULE, sender, [To, Each]) || _ <- lists:seq(1, Count)],
    done_since(Began) / Total * Ops.

%% ---- big ----

%% A generator whose numbers stay small: no allocation.
partner(Seed, Me) ->
    Next = Seed * 16807 rem 2147483647,
    Other = Next rem (?BIG - 1) + 1,
    {Next, if Other < Me -> Other; true -> Other + 1 end}.

talker_begin(Me, Pings, Running, Main) ->
    receive {go, All} -> ping(Me, Me, Pings, All, Running, Main) end.

ping(Me, Seed, Left, All, Running, Main) ->
    {Next, Other} = partner(Seed, Me),
    element(Other, All) ! {ping, self()},
    talker(Me, Next, Left, All, Running, Main).

talker(Me, Seed, Left, All, Running, Main) ->
    receive
        {ping, From} ->
            From ! pong,
            talker(Me, Seed, Left, All, Running, Main);
        pong when Left > 1 ->
            ping(Me, Seed, Left - 1, All, Running, Main);
        pong ->
            case atomics:sub_get(Running, 1, 1) of
                0 -> Main ! done;
                _ -> ok
            end,
            talker(Me, Seed, 0, All, Running, Main)
    end.

big(Ops) ->
    Each = Ops div (2 * ?BIG) + 1,
    Running = atomics:new(1, []),
    atomics:put(Running, 1, ?BIG),
    Pids = [spawn(?MODULE, talker_begin, [Me, Each, Running, self()]) || Me <- lists:seq(1, ?BIG)],
    All = list_to_tuple(Pids),
    Began = now_ns(),
    [Pid ! {go, All} || Pid <- Pids],
    Ns = done_since(Began),
    stop(Pids),
    Ns / (2 * Each * ?BIG) * Ops.

%% ---- create, message, end ----

child() ->
    receive
        die -> ok;
        {die, Parent} -> Parent ! made
    end.

create(Ops) ->
    Before = erlang:system_info(process_count),
    Began = now_ns(),
    make(Ops),
    await_count(Before),
    now_ns() - Began.

make(0) -> ok;
make(Left) ->
    Now = min(Left, ?BATCH),
    make_batch(Now),
    receive made -> make(Left - Now) end.

make_batch(1) ->
    spawn(?MODULE, child, []) ! {die, self()};
make_batch(N) ->
    spawn(?MODULE, child, []) ! die,
    make_batch(N - 1).

await_count(Count) ->
    case erlang:system_info(process_count) of
        Now when Now =< Count -> ok;
        _ -> erlang:yield(), await_count(Count)
    end.

%% ---- call, link, monitor ----

server(Calls) ->
    receive
        {ask, From} ->
            From ! {From, Calls + 1},
            server(Calls + 1)
    end.

ask(To) ->
    Ref = monitor(process, To, [{alias, reply_demonitor}]),
    To ! {ask, Ref},
    receive
        {Ref, Answer} -> Answer;
        {'DOWN', Ref, process, _, Why} -> exit(Why)
    end.

calls(_, 0, Answer) -> Answer;
calls(To, Left, _) -> calls(To, Left - 1, ask(To)).

links(_, 0) -> ok;
links(To, Left) ->
    link(To),
    unlink(To),
    links(To, Left - 1).

monitors(_, 0) -> ok;
monitors(To, Left) ->
    demonitor(monitor(process, To), [flush]),
    monitors(To, Left - 1).

%% In a process of its own, beside another.
together(Work) ->
    To = spawn(?MODULE, server, [0]),
    Main = self(),
    Began = now_ns(),
    spawn_link(fun() -> Work(To), Main ! done end),
    Ns = done_since(Began),
    stop([To]),
    Ns.

call(Ops) -> together(fun(To) -> Ops = calls(To, Ops, 0) end).

link_pairs(Ops) -> together(fun(To) -> links(To, Ops) end).

monitor_pairs(Ops) -> together(fun(To) -> monitors(To, Ops) end).

%% ---- crash and restart ----

init({Left, Main}) ->
    Child = #{id => mortal, start => {?MODULE, mortal_start, [{Left, Main}]}},
    {ok, {#{strategy => one_for_one, intensity => ?BATCH, period => 1}, [Child]}}.

mortal_start({Left, Main}) ->
    case atomics:sub_get(Left, 1, 1) of
        -1 ->
            Main ! done,
            {ok, spawn_link(?MODULE, mortal, [none])};
        _ ->
            Pid = spawn_link(?MODULE, mortal, [crash]),
            Pid ! crash,
            {ok, Pid}
    end.

mortal(Word) ->
    receive Word -> exit(crashed) end.

restart(Ops) ->
    Began = now_ns(),
    crashes(Ops),
    now_ns() - Began.

crashes(0) -> ok;
crashes(Ops) ->
    Now = min(Ops, ?BATCH),
    Left = atomics:new(1, []),
    atomics:put(Left, 1, Now),
    process_flag(trap_exit, true),
    {ok, Sup} = supervisor:start_link(?MODULE, {Left, self()}),
    receive done -> ok end,
    exit(Sup, shutdown),
    receive {'EXIT', Sup, shutdown} -> crashes(Ops - Now) end.

%% ---- memory ----

%% A number out of /proc, in KiB.
kib(Key) ->
    {ok, Text} = file:read_file("/proc/" ++ os:getpid() ++ "/status"),
    {match, [N]} = re:run(Text, Key ++ ":\\s+(\\d+)", [{capture, all_but_first, list}]),
    list_to_integer(N).

memory() ->
    1024 * (kib("VmRSS") + kib("VmPTE")).

%% The state is a tuple: its header and seven words are 64 bytes. It is made here, so that it is not a shared constant.
idler_begin(Born, Words) ->
    State = erlang:make_tuple(Words, self()),
    counters:add(Born, 1, 1),
    erlang:hibernate(?MODULE, idler, [State]).

idler(State) ->
    receive N -> idler(setelement(N, State, N)) end.

idle(Count, Words) ->
    Born = counters:new(1, []),
    Before = memory(),
    idle(0, Count, Words, Born),
    (memory() - Before) / Count.

idle(Count, Count, _, _) -> ok;
idle(Made, Count, Words, Born) ->
    [spawn(?MODULE, idler_begin, [Born, Words]) || _ <- lists:seq(1, ?IDLE_STEP)],
    await_born(Born, Made + ?IDLE_STEP),
    idle(Made + ?IDLE_STEP, Count, Words, Born).

await_born(Born, Count) ->
    case counters:get(Born, 1) of
        Count -> ok;
        _ -> erlang:yield(), await_born(Born, Count)
    end.
