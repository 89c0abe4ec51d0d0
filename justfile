# `just` lists the commands.

_default:
    @just --list

# Format, lints, all tests, documentation, API drift.
test:
    tests/run

# The tests over the shared data; TOOLRACK_TEST_DATA names its folder.
data-tests:
    @test -n "${TOOLRACK_TEST_DATA:-}" || { echo "set TOOLRACK_TEST_DATA to the folder of the shared data" >&2; exit 1; }
    @test -d "$TOOLRACK_TEST_DATA/catalogs" || { echo "TOOLRACK_TEST_DATA=$TOOLRACK_TEST_DATA has no folder catalogs" >&2; exit 1; }
    TOOLRACK_TEST_DATA="$(cd "$TOOLRACK_TEST_DATA" && pwd)" cargo test --locked --features data-tests --test it -- real_data

# Speed and memory beside a baseline in the same run. With TOOLRACK_TEST_DATA over real catalogs.
bench *args:
    cargo bench --locked --bench core -- {{args}}
    cargo bench --locked --bench http -- {{args}}

# The main job, step by step.
demo:
    cargo run --release -- demo

# Write the API document anew.
openapi:
    cargo run --quiet -- openapi > openapi/toolrack.v1.json
