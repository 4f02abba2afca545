%% Erlang: a node that answers bench/cluster/blitz.c (serve), and the same cases between two nodes of Erlang (main). The process
%% that reads messages matches them one after the other, as a program would.
-module(bench_cluster).

-export([serve/0, main/0, talker/0]).

serve() ->
    register(bench, self()),
    loop().

%% As the actor of blitz.c.
loop() ->
    receive
        {m, _} -> loop();
        {last, Pid} -> Pid ! done_term(Pid), loop();
        {token, Pid, Left, Data} when Left > 0 -> Pid ! {token, self(), Left - 1, Data}, loop();
        {hello, Pid} -> Pid ! {at, self()}, loop();
        {go, Count, To} ->
            Data = binary:copy(<<0>>, 64),
            send(Count, To, {m, Data}),
            To ! {last, To},
            loop()
    end.

%% A term without parts is an atom for blitz.
done_term(_) -> done.

send(0, _, _) -> ok;
send(N, To, Term) -> To ! Term, send(N - 1, To, Term).

talker() -> serve().

%% ---- two nodes: main CASE OPTION, with the other node's name in OTHER ----

main() ->
    [Name | Options] = init:get_plain_arguments(),
    {_, Watch} = spawn_monitor(fun() -> io:format("~s ~.6g~n", [Name, measure(Name, Options)]) end),
    receive
        {'DOWN', Watch, process, _, Why} ->
            Why =:= normal orelse io:format(standard_error, "~0p~n", [Why]),
            rpc_halt(),
            halt(case Why of normal -> 0; _ -> 1 end)
    end.

rpc_halt() ->
    [rpc:cast(N, erlang, halt, []) || N <- nodes(connected)],
    timer:sleep(50).

measure(Name, Options) ->
    Other = meet(500),
    Run = case Name of
        "send" -> fun(Ops) -> send_all(Other, Ops) end;
        "round-trip" -> fun(Ops) -> to_and_fro(Other, Ops) end
    end,
    case Options of
        ["--ops=" ++ N] -> Run(list_to_integer(N));
        ["--seconds=" ++ S] -> calibrated(Run, 64, seconds(S) * 1.0e9)
    end.

seconds(Text) ->
    try list_to_float(Text) catch error:badarg -> float(list_to_integer(Text)) end.

%% As bench_calibrated() of bench.h.
calibrated(Run, Ops, Want) ->
    case Run(Ops) of
        Each when Each * Ops < Want / 5 -> calibrated(Run, 2 * Ops, Want);
        Each -> Run(trunc(Want / Each) + 1)
    end.

meet(0) -> exit(no_other_node);
meet(N) ->
    {bench, 'other@localhost'} ! {hello, self()},
    receive {at, Pid} -> Pid after 20 -> meet(N - 1) end.

send_all(Other, Ops) ->
    Began = erlang:monotonic_time(nanosecond),
    send(Ops, Other, {m, binary:copy(<<0>>, 64)}),
    Other ! {last, self()},
    receive done -> (erlang:monotonic_time(nanosecond) - Began) / Ops end.

to_and_fro(Other, Ops) ->
    Began = erlang:monotonic_time(nanosecond),
    Other ! {token, self(), 2 * Ops - 1, binary:copy(<<0>>, 40)},
    back(Other),
    (erlang:monotonic_time(nanosecond) - Began) / Ops.

back(Other) ->
    receive
        {token, _, 0, _} -> ok;
        {token, Pid, Left, Data} -> Pid ! {token, self(), Left - 1, Data}, back(Other)
    end.
