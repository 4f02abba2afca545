"""The bench frame: what tools/bench is made of. bench/README.md tells how to use it.

spec     reads bench/NAME.toml: contenders, cases, units
build    installs, configures and builds ours and the peers; a peer that fails is skipped, with why
measure  runs the programs in turn, round after round; counts instructions under callgrind
stats    medians, the A/A spread, ratios, verdicts; the rows of build/bench/NAME.json
goals    figures and multiples a case is to reach
table    the rows for a terminal
machine  what these figures were measured on
report   all JSON files as one HTML page
"""
