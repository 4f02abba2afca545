#!/usr/bin/env escript
%% Erlang's side of term_erlang_test.c.
%%
%%   echo IN OUT   IN has terms and their texts, each with a length of 32 bits. Decode each term; parse its text, unless that is
%%                 empty, which must be the same term. Write the terms as term_to_binary() encodes them.
%%   make N OUT    Write N random terms, each with UTF-8 atoms and with Latin-1 atoms.
-mode(compile).

main(["echo", In, Out]) ->
    {ok, Bytes} = file:read_file(In),
    ok = file:write_file(Out, echo(Bytes, 0));
main(["make", N, Out]) ->
    rand:seed(exsss, list_to_integer(os:getenv("TERMS_SEED", "1"))),
    Fixed = fixed(),
    Random = [any(4) || _ <- lists:seq(1, list_to_integer(N))],
    ok = file:write_file(Out, [[frame(T, 2), frame(T, 1)] || T <- Fixed ++ Random]).

frame(Term, Minor) ->
    Bytes = term_to_binary(Term, [{minor_version, Minor}]),
    [<<(byte_size(Bytes)):32>>, Bytes].

echo(<<>>, _) -> [];
echo(<<N:32, Bytes:N/binary, M:32, Text:M/binary, Rest/binary>>, I) ->
    Term = try binary_to_term(Bytes)
           catch error:badarg -> fail("term ~p is refused: ~0p", [I, Bytes])
           end,
    M > 0 andalso check_text(Term, Text, I),
    [frame(Term, 2) | echo(Rest, I + 1)].

check_text(Term, Text, I) ->
    case erl_scan:string(unicode:characters_to_list(Text) ++ ".") of
        {ok, Tokens, _} ->
            case erl_parse:parse_term(Tokens) of
                {ok, Term} -> ok;
                Other -> fail("text ~p: ~ts is ~0p and not ~0p", [I, Text, Other, Term])
            end;
        Error -> fail("text ~p: ~ts: ~0p", [I, Text, Error])
    end.

fail(Format, Args) ->
    io:format(Format ++ "~n", Args),
    halt(1).

fixed() ->
    X = rand:uniform(1000),
    Pid = self(),
    [[], "", {}, #{}, <<>>, <<1:1>>, 'a', '', list_to_atom(lists:duplicate(255, $a)), list_to_atom(lists:duplicate(255, 16#65e5)),
     list_to_atom([16#e4, 16#fc]), 0, 255, 256, -1, 1 bsl 27, 1 bsl 31, -(1 bsl 31), 1 bsl 63, -(1 bsl 63), -(1 bsl 63) - 1, 1 bsl 64,
     1 bsl 2040, 1 bsl 2048, -(1 bsl 9000), 0.0, -0.0, 1.0e308, 5.0e-324, self(), make_ref(), spawn(fun() -> ok end),
     fun lists:map/2, fun(Y) -> X + Y end, fun() -> {Pid, X, "text"} end, hd(erlang:ports()), [a | b], [1 | 2],
     lists:duplicate(65535, 7), lists:duplicate(65536, 7), list_to_tuple(lists:seq(1, 255)), list_to_tuple(lists:seq(1, 256)),
     maps:from_list([{I, I} || I <- lists:seq(1, 100)]), [[[[]]]], {{{{}}}}, #{#{} => #{}, [] => #{a => #{1.0 => b}}}, [[1, 2] | "tail"]].

any(0) -> leaf(rand:uniform(9));
any(Depth) ->
    case rand:uniform(7) of
        1 -> list_to_tuple(some(Depth));
        2 -> some(Depth);
        3 -> some(Depth) ++ leaf(1);
        4 -> maps:from_list([{any(Depth - 1), any(Depth - 1)} || _ <- lists:seq(1, rand:uniform(5) - 1)]);
        _ -> leaf(rand:uniform(9))
    end.

some(Depth) -> [any(Depth - 1) || _ <- lists:seq(1, rand:uniform(6) - 1)].

leaf(1) -> rand:uniform(1 bsl rand:uniform(70)) - (1 bsl 35);
leaf(2) -> rand:uniform() * (1 bsl rand:uniform(60));
leaf(3) -> list_to_atom([rand:uniform(500) + 31 || _ <- lists:seq(1, rand:uniform(8))]);
leaf(4) -> rand:bytes(rand:uniform(20));
leaf(5) -> N = rand:uniform(60), <<B:N/bitstring, _/bitstring>> = rand:bytes(8), B;
leaf(6) -> [rand:uniform(256) - 1 || _ <- lists:seq(1, rand:uniform(30))];
leaf(7) -> make_ref();
leaf(8) -> X = rand:uniform(100), fun(Y) -> X * Y end;
leaf(9) -> -rand:uniform(300).
