# blitz: short names for what CMake, the tests and the tools do. `make help` lists them.
#
# Every target that builds calls tools/setup first; on a fresh Debian with git and make that is the
# whole installation.

.DEFAULT_GOAL := help
J ?= $(shell nproc)

.PHONY: help
help: ## this list
	@grep -hE '^[a-z][a-zA-Z_%-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | \
	    awk -F'\t' '{printf "  make %-16s %s\n", $$1, $$2}'

# $(call build,PRESET): configure if new, then build.
build = cmake --preset $(1) >build/$(1).log 2>&1 || { cat build/$(1).log; exit 1; }; \
        cmake --build --preset $(1) -j $(J)
build/:
	@mkdir -p build

.PHONY: test
test: | build/ ## build and run the tests
	@$(call build,release)
	@ctest --test-dir build/release -j $(J) --output-on-failure
