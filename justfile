# `just` lists the commands.

_default:
    @just --list

# Format, lints, all tests, documentation, API drift.
test:
    tests/run

# The tests over the shared data, with 1,000 real tools in the browser; TOOLRACK_TEST_DATA names its folder.
data-tests:
    @test -n "${TOOLRACK_TEST_DATA:-}" || { echo "set TOOLRACK_TEST_DATA to the folder of the shared data" >&2; exit 1; }
    @test -d "$TOOLRACK_TEST_DATA/catalogs" || { echo "TOOLRACK_TEST_DATA=$TOOLRACK_TEST_DATA has no folder catalogs" >&2; exit 1; }
    TOOLRACK_TEST_DATA="$(cd "$TOOLRACK_TEST_DATA" && pwd)" cargo test --locked --features data-tests --test it -- real_data
    TOOLRACK_TEST_DATA="$(cd "$TOOLRACK_TEST_DATA" && pwd)" tests/browser/run

# Speed and memory beside a baseline in the same run. With TOOLRACK_TEST_DATA over real catalogs.
bench *args:
    cargo bench --locked --bench core -- {{args}}
    cargo bench --locked --bench http -- {{args}}
    cargo run --release --locked --manifest-path benches/lexical/Cargo.toml --target-dir target -- --bench {{args}}

# Retrieval on all sets of TOOLRACK_TEST_DATA/bench, by words and with a small model behind an endpoint, into docs/quality.md.
quality:
    @test -n "${TOOLRACK_TEST_DATA:-}" || { echo "set TOOLRACK_TEST_DATA to the folder of the shared data" >&2; exit 1; }
    @test -d "$TOOLRACK_TEST_DATA/bench" || { echo "TOOLRACK_TEST_DATA=$TOOLRACK_TEST_DATA has no folder bench" >&2; exit 1; }
    @mkdir -p docs
    cargo build --release --locked
    tests/model/run sh -c 'target/release/toolrack eval --suite "$TOOLRACK_TEST_DATA/bench" --goals tests/quality/goals.json \
      --modes --matcher-url "$TOOLRACK_TEST_MODEL_URL/v1" --matcher-model all-MiniLM-L6-v2 --markdown docs/quality.md'

# Every fuzz target for so many seconds (cargo-fuzz, a nightly compiler). New inputs go below target, findings to fuzz/artifacts. Toolrack
# is safe Rust, so that no sanitizer is needed, and runs are several times as fast.
fuzz seconds="60":
    cd fuzz && for target in $(cargo +nightly fuzz list); do \
      mkdir -p "../target/fuzz-corpus/$target"; \
      cargo +nightly fuzz run --sanitizer none "$target" "../target/fuzz-corpus/$target" "corpus/$target" -- \
        -max_total_time={{seconds}} -timeout=20 -rss_limit_mb=2048 || exit 1; \
    done

# 200 tenants, an endpoint that comes and goes, three kills: nothing that was promised is lost, and memory stays flat.
soak seconds="600":
    cargo bench --locked --bench soak -- {{seconds}}

# Licences, sources and bans of all dependencies (cargo install cargo-deny --locked).
deny:
    cargo deny --locked check bans licenses sources

# A bill of materials, toolrack.cdx.json (cargo install cargo-cyclonedx --locked).
sbom:
    cargo cyclonedx --format json --spec-version 1.5

# The main job, step by step.
demo:
    cargo run --release -- demo

# The pages in a browser, by chromium: the setup flow, conflicts, phones, axe-core. Screenshots go to target/browser/shots.
browser:
    tests/browser/run

# Make the pictures of docs/setup.md anew.
setup-pictures:
    tests/browser/run pictures

# Write the API document anew.
openapi:
    UPDATE_OPENAPI=1 cargo test --locked --test it openapi
