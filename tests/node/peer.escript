#!/usr/bin/env escript
%% An Erlang node beside a node of blitz: peer.escript WHAT OURS THEIRS. It ends with 0 if all went as it must.
-module(blitz_peer).
-mode(compile).
-behaviour(gen_server).
-export([main/1, start_job/1, job/1, init/1, handle_call/3, handle_cast/2, handle_info/2]).

main([What, Ours, Theirs, Port]) -> %% it listens there
    application:load(kernel),
    application:set_env(kernel, inet_dist_listen_min, list_to_integer(Port)),
    application:set_env(kernel, inet_dist_listen_max, list_to_integer(Port)),
    main([What, Ours, Theirs]);
main([What, Ours, Theirs]) ->
    {ok, _} = net_kernel:start([list_to_atom(Ours), shortnames]),
    erlang:set_cookie(node(), monster),
    run(What, list_to_atom(Theirs)),
    halt(0).

run("ping", B) ->
    pong = net_adm:ping(B),
    true = lists:member(B, nodes(hidden)),
    false = lists:member(B, nodes()),
    pong = net_adm:ping(B);
run("wrong", B) ->
    erlang:set_cookie(node(), wrong),
    pang = net_adm:ping(B),
    erlang:set_cookie(node(), monster),
    pong = net_adm:ping(B);
run("add", B) ->
    [begin {adder, B} ! {add, 1, self()}, receive {sum, N} -> ok after 20000 -> halt(3) end end
     || N <- lists:seq(1, 500)],
    %% many at a time, in order
    [{adder, B} ! {add, 1, self()} || _ <- lists:seq(1, 20000)],
    [receive {sum, N} -> ok after 20000 -> halt(4) end || N <- lists:seq(501, 20500)],
    %% what is in no table is dropped, and the connection goes on
    {adder, B} ! {nothing, #{a => fun lists:map/2}, make_ref(), 1.5, [x | y]},
    {nobody, B} ! hello,
    {adder, B} ! {add, 0, self()},
    receive {sum, 20500} -> ok after 20000 -> halt(5) end;
run("blob", B) ->
    [begin
         Bin = binary:copy(<<I>>, Size),
         {tester, B} ! {blob, I, Bin},
         {tester, B} ! {add, I, self()},
         receive {sum, Size} -> ok; X -> io:format("~p~n", [X]), halt(6) after 60000 -> halt(7) end
     end || {I, Size} <- [{1, 0}, {2, 1}, {3, 1000}, {4, 65536}, {5, 1 bsl 20}, {6, 64 bsl 20}]];
run("echo", B) ->
    register(echo, self()),
    {tester, B} ! {add, 0, self()},
    echo(0);
run("relate", B) ->
    process_flag(trap_exit, true),
    %% by name, by pid, of the dead and of none
    V1 = victim(B),
    M1 = monitor(process, {victim, B}), M2 = monitor(process, V1), link(V1),
    {victim, B} ! {finish, 0},
    receive {'DOWN', M1, process, {victim, B}, normal} -> ok after 20000 -> halt(11) end,
    receive {'DOWN', M2, process, V1, normal} -> ok after 20000 -> halt(12) end,
    receive {'EXIT', V1, normal} -> ok after 20000 -> halt(13) end,
    M3 = monitor(process, V1),
    receive {'DOWN', M3, process, V1, noproc} -> ok after 20000 -> halt(14) end,
    M4 = monitor(process, {nobody, B}),
    receive {'DOWN', M4, process, {nobody, B}, noproc} -> ok after 20000 -> halt(15) end,
    catch link(V1),
    receive {'EXIT', V1, noproc} -> ok after 20000 -> halt(16) end,
    %% an error with its code and text
    V2 = victim(B), link(V2), M5 = monitor(process, V2),
    V2 ! {finish, 42},
    receive {'DOWN', M5, process, V2, {error, 42, <<"by wish">>}} -> ok after 20000 -> halt(17) end,
    receive {'EXIT', V2, {error, 42, <<"by wish">>}} -> ok after 20000 -> halt(18) end,
    %% nothing after an unlink and a demonitor
    V3 = victim(B), link(V3), M6 = monitor(process, V3),
    unlink(V3), demonitor(M6, [flush]),
    V3 ! {finish, 1},
    V4 = victim(B),
    receive {'EXIT', V3, _} -> halt(19); {'DOWN', M6, _, _, _} -> halt(20) after 0 -> ok end,
    %% a process that ends takes the actor with it
    M7 = monitor(process, V4),
    P1 = spawn(fun() -> link(V4), receive after 100 -> exit(gone) end end),
    receive {'DOWN', M7, process, V4, {error, 0, <<"gone">>}} -> ok; X -> io:format("~p~n", [{X, P1}]), halt(21)
    after 20000 -> halt(22) end,
    %% exit/2, and kill
    V5 = victim(B), M8 = monitor(process, V5),
    exit(V5, shutdown),
    receive {'DOWN', M8, process, V5, shutdown} -> ok after 20000 -> halt(23) end,
    V6 = victim(B), M9 = monitor(process, V6),
    exit(V6, kill),
    receive {'DOWN', M9, process, V6, killed} -> ok after 20000 -> halt(24) end,
    %% the actor links and watches a process
    V7 = victim(B),
    P2 = spawn(fun() -> receive stop -> exit({bad, 1}) end end),
    V7 ! {watch, P2, self()},
    receive {watching, 0} -> ok after 20000 -> halt(25) end,
    P2 ! stop,
    receive {told, 3, <<"{bad,1}">>} -> ok; Y -> io:format("~p~n", [Y]), halt(26) after 20000 -> halt(27) end,
    V7 ! {watch, P2, self()}, %% which is dead
    receive {watching, 0} -> ok after 20000 -> halt(28) end,
    receive {told, 4, <<>>} -> ok; Z -> io:format("~p~n", [Z]), halt(29) after 20000 -> halt(30) end,
    %% a split: each once, on both sides
    M10 = monitor(process, V7), link(V7),
    P3 = spawn(fun() -> receive stop -> ok end end),
    V7 ! {watch, P3, self()},
    receive {watching, 0} -> ok after 20000 -> halt(31) end,
    erlang:disconnect_node(B),
    receive {'DOWN', M10, process, V7, noconnection} -> ok after 20000 -> halt(32) end,
    receive {'EXIT', V7, noconnection} -> ok after 20000 -> halt(33) end,
    receive {told, 6, <<>>} -> ok; W -> io:format("~p~n", [W]), halt(34) after 20000 -> halt(35) end,
    V7 ! {finish, 0},
    V8 = victim(B),
    exit(V8, kill),
    receive Q -> io:format("~p~n", [Q]), halt(36) after 200 -> ok end;
run("call", B) ->
    S = {server, B},
    {answer, 42} = gen_server:call(S, {ask, 21, 0}),
    {answer, 44} = gen_server:call(S, {ask, 22, 2}),
    {answer, 46} = gen_server:call(S, {ask, 23, 6}),
    {error, -16} = gen_server:call(S, {ask, 1, 3}),
    {error, -95} = gen_server:call(S, {what, [is, this]}),
    {double, 8} = gen_server:call({any, B}, {double, 4}),
    ok = gen_server:call(S, flush),
    %% later, many at once
    Me = self(),
    [spawn_link(fun() -> {answer, A} = gen_server:call(S, {ask, N, 1}), A = 2 * N, Me ! done end) || N <- lists:seq(1, 20)],
    flush_until_done(S, 20),
    %% a timeout: the answer that comes later is seen by nobody
    {'EXIT', {timeout, _}} = (catch gen_server:call(S, {ask, 1, 1}, 50)),
    ok = gen_server:call(S, flush),
    receive Late -> io:format("~p~n", [Late]), halt(51) after 100 -> ok end,
    %% no such process, and one that ends in the call
    {'EXIT', {noproc, _}} = (catch gen_server:call({nobody, B}, hello)),
    {'EXIT', {{error, 7, <<"by wish">>}, _}} = (catch gen_server:call(S, {ask, 1, 4})),
    %% a call by hand, without an alias
    ok = gen_server:call({restart, B}, again),
    Tag = make_ref(),
    {server, B} ! {'$gen_call', {self(), Tag}, {ask, 5, 0}},
    receive {Tag, {answer, 10}} -> ok after 20000 -> halt(53) end,
    %% the connection goes in the call
    P = spawn(fun() -> Me ! (catch gen_server:call(S, {ask, 1, 5})) end),
    until_calls(P),
    erlang:disconnect_node(B),
    receive {'EXIT', {{nodedown, B}, _}} -> ok; Other -> io:format("~p~n", [Other]), halt(54) after 20000 -> halt(57) end,
    {answer, 2} = gen_server:call(S, {ask, 1, 0}),
    %% now they call us
    {ok, G} = gen_server:start({local, calc}, ?MODULE, [], []),
    {tester, B} ! {add, 0, G},
    M = monitor(process, G),
    receive {'DOWN', M, process, G, bad} -> ok after 60000 -> halt(55) end,
    {ok, G2} = gen_server:start({local, calc}, ?MODULE, [], []),
    {tester, B} ! {add, 1, G2},
    M2 = monitor(process, G2),
    receive {'DOWN', M2, process, G2, _} -> ok after 60000 -> halt(56) end;
run("spawn", B) ->
    process_flag(trap_exit, true),
    P1 = spawn(B, jobs, start, [21, self()]),
    receive {sum, 42} -> ok after 20000 -> halt(61) end,
    {P2, M2} = spawn_monitor(B, jobs, start, [-7, undefined]),
    receive {'DOWN', M2, process, P2, {error, -7, <<"by wish">>}} -> ok; X2 -> io:format("~p~n", [X2]), halt(62) after 20000 -> halt(63) end,
    P3 = spawn_link(B, jobs, start, [-7, undefined]),
    receive {'EXIT', P3, {error, -7, <<"by wish">>}} -> ok; X3 -> io:format("~p~n", [X3]), halt(64) after 20000 -> halt(65) end,
    R4 = erlang:spawn_request(B, os, cmd, ["true"], []),
    receive {spawn_reply, R4, error, undef} -> ok; X4 -> io:format("~p~n", [X4]), halt(66) after 20000 -> halt(67) end,
    R5 = erlang:spawn_request(B, jobs, start, [a, b], [monitor]),
    receive {spawn_reply, R5, error, badarg} -> ok; X5 -> io:format("~p~n", [X5]), halt(68) after 20000 -> halt(69) end,
    R6 = erlang:spawn_request(B, jobs, start, [1, undefined], [monitor, link, {priority, high}]),
    P6 = receive {spawn_reply, R6, ok, Pid6} -> Pid6; X6 -> io:format("~p~n", [X6]), halt(70) after 20000 -> halt(71) end,
    exit(P6, kill),
    receive {'DOWN', R6, process, P6, killed} -> ok after 20000 -> halt(72) end,
    receive {'EXIT', P6, killed} -> ok after 20000 -> halt(73) end,
    exit(P1, kill),
    {tester, B} ! {add, 0, self()},
    receive {sum, -1} -> ok after 60000 -> halt(74) end;
run("supervise", B) ->
    process_flag(trap_exit, true),
    {ok, Sup} = supervisor:start_link(?MODULE, {supervise, B}),
    P = lists:foldl(fun(How, Old) ->
        exit(Old, How),
        other_child(Sup, Old)
    end, child(Sup), [kill, shutdown, wrong, kill]),
    %% the supervisor ends it, and waits for its end
    M = monitor(process, P),
    exit(Sup, shutdown),
    receive {'EXIT', Sup, shutdown} -> ok after 20000 -> halt(81) end,
    receive {'DOWN', M, process, P, shutdown} -> ok; X -> io:format("~p~n", [X]), halt(82) after 20000 -> halt(83) end;
run("split", _) ->
    net_kernel:set_net_ticktime(4, 0),
    process_flag(trap_exit, true),
    register(split, self()),
    %% they find us, and say who their actor is
    Tester = receive {hello, From} when is_pid(From) -> From after 60000 -> halt(91) end,
    Me = self(),
    P = spawn(fun() -> process_flag(trap_exit, true), receive never -> ok end end),
    spawn_link(fun() -> stream(Tester, 1) end),
    Tester ! {add, 0, P},
    split(Tester, P, Me);
run("supervised", B) ->
    register(keeper, self()),
    {tester, B} ! {sum, 100},
    keep(B);
run("bystander", B) ->
    net_kernel:set_net_ticktime(4, 0),
    {ok, G} = gen_server:start({local, calc}, ?MODULE, [], []),
    {tester, B} ! {add, 1, G},
    M = monitor(process, G),
    receive {'DOWN', M, process, G, _} -> ok after 120000 -> halt(92) end;
run("ticks", B) ->
    net_kernel:set_net_ticktime(4, 0),
    pong = net_adm:ping(B),
    erlang:monitor_node(B, true),
    receive {nodedown, B} -> halt(8) after 12000 -> ok end,
    pong = net_adm:ping(B).

%% One round: relations with an actor of theirs, a split, and that each was told once. Then none of them is left.
split(Tester, P, Me) ->
    receive
        {relate, V} ->
            link(V),
            M = monitor(process, V),
            Tester ! {related, 0},
            receive {'DOWN', M, process, V, noconnection} -> ok after 60000 -> halt(94) end,
            receive {'EXIT', V, noconnection} -> ok after 60000 -> halt(96) end,
            split(Tester, P, Me);
        {check, N} -> %% behind the end of that actor: nothing was told of it
            receive Z when element(1, Z) =:= 'DOWN'; element(1, Z) =:= 'EXIT' -> io:format("~p~n", [Z]), halt(97) after 0 -> ok end,
            Tester ! {checked, N},
            split(Tester, P, Me);
        {finish, _} -> exit(P, bye), split(Tester, P, Me);
        {leave, _} -> ok;
        {hello, _} -> split(Tester, P, Me);
        Q -> io:format("~p~n", [Q]), halt(98)
    after 120000 -> halt(99)
    end.

%% A child of their supervisor. The keeper tells them of its birth, and of the reason of its end.
job(Kind) ->
    process_flag(trap_exit, Kind =:= stubborn),
    keeper ! {born, self()},
    job().
job() ->
    receive
        {sum, 9} -> exit({bad, 1});
        {sum, 8} -> ok;
        _ -> job()
    end.

keep(B) ->
    receive
        {born, P} -> monitor(process, P), {tester, B} ! {sum, 0}, keep(B);
        {'DOWN', _, process, _, shutdown} -> {tester, B} ! {sum, 1}, keep(B);
        {'DOWN', _, process, _, killed} -> {tester, B} ! {sum, 2}, keep(B);
        {'DOWN', _, process, _, noconnection} -> {tester, B} ! {sum, 3}, keep(B);
        {'DOWN', _, process, _, {bad, 1}} -> {tester, B} ! {sum, 4}, keep(B);
        {'DOWN', _, process, _, normal} -> {tester, B} ! {sum, 5}, keep(B);
        {sum, -1} -> ok;
        X -> io:format("~p~n", [X]), halt(101)
    after 60000 -> halt(102)
    end.

%% Numbers, for ever. They do not connect by themselves: who has gone is sent nothing.
stream(To, N) ->
    erlang:send(To, {sum, N}, [noconnect]),
    timer:sleep(1),
    stream(To, N + 1).

%% The process waits for the answer of a call.
until_calls(P) ->
    case process_info(P, [status, current_function]) of
        [{status, waiting}, {current_function, {gen, do_call, _}}] -> ok;
        _ -> timer:sleep(1), until_calls(P)
    end.

flush_until_done(_, 0) -> ok;
flush_until_done(S, N) ->
    ok = gen_server:call(S, flush),
    receive done -> flush_until_done(S, N - 1) after 10 -> flush_until_done(S, N) end.

%% An actor of theirs as the child of a supervisor.
start_job(B) -> {ok, spawn_link(B, jobs, start, [1, undefined])}.
child(Sup) -> [{job, P, worker, _}] = supervisor:which_children(Sup), P.
other_child(Sup, Old) ->
    case child(Sup) of
        P when is_pid(P), P =/= Old -> P;
        _ -> timer:sleep(1), other_child(Sup, Old)
    end.

%% A gen_server that they call.
init({supervise, B}) ->
    {ok, {#{strategy => one_for_one, intensity => 10, period => 10},
          [#{id => job, start => {?MODULE, start_job, [B]}, restart => permanent, shutdown => 10000}]}};
init(_) -> {ok, none}.
handle_call({ask, N, 0}, _, S) -> {reply, {answer, 2 * N}, S};
handle_call({ask, N, 1}, From, S) ->
    spawn(fun() -> timer:sleep(20), gen_server:reply(From, {answer, 2 * N}) end), {noreply, S};
handle_call({ask, N, 2}, From, S) -> spawn(fun() -> gen_server:reply(From, {answer, 2 * N}) end), {noreply, S};
handle_call({ask, _, 3}, _, S) -> {reply, {error, -16}, S};
handle_call({ask, _, 4}, _, S) -> {stop, bad, S};
handle_call({ask, _, 5}, _, S) -> {noreply, S};
handle_call({ask, N, 6}, {Pid, Tag}, S) -> Pid ! {Tag, {answer, 2 * N}}, {noreply, S};
handle_call({ask, _, 7}, _, S) -> {reply, nonsense, S};
handle_call({ask, _, 8}, _, S) ->
    {monitored_by, L} = process_info(self(), monitored_by),
    {reply, {answer, length(lists:filter(fun(X) -> node(X) =/= node() end, L))}, S};
handle_call(flush, _, S) -> {reply, ok, S};
handle_call({leave, Node}, _, S) -> erlang:disconnect_node(Node), {noreply, S};
handle_call(X, _, S) -> {reply, {got, X}, S}.
handle_cast(_, S) -> {noreply, S}.
handle_info(_, S) -> {noreply, S}.

echo(Sum) ->
    receive
        {add, N, From} when is_pid(From) -> From ! {sum, Sum + N}, echo(Sum + N);
        {blob, N, Bin} -> echo(Sum + N + byte_size(Bin));
        {sum, -1} -> ok
    after 60000 -> halt(9)
    end.

%% A new actor of theirs that ends on request, as its pid.
victim(B) ->
    {maker, B} ! {make, self()},
    receive {made, Pid} -> Pid after 20000 -> halt(10) end.
