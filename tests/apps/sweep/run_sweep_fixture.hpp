/// A sweep over a stand-in for `troupe train`, in a folder of its own. tests/apps/commands/sweep_test.cpp has the real program.
#pragma once

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "apps/sweep/run_sweep.hpp"
#include "apps/sweep/sweep_log.hpp"
#include "tests/folder.hpp"

namespace troupe::apps {

/// Trains nothing: a run's accuracy is its learning rate, and grows with its epochs. It says which nodes it had, and what it was asked for.
/// `lost:1` does not answer, `late:1` is lost once when its run has ended. A rate above 0.9 diverges after a quarter of an epoch. Files beside it: `full` is a full disk,
/// `moved` another machine, on which runs resume with --replan only, `small` one without memory for rates above 0.8. With `long` it trains until
/// it is told to end, and says so in `trains`. With `mute` what it says is lost, with `silent` it tells its loss only. With `last` one run
/// trains until it is told to end, and the other is the last that can be started. It takes `watches` away and keeps what sweep.json says while it trains, as `seen`.
inline constexpr std::string_view kTrain = R"sh(#!/bin/bash
here=$(dirname "$0")
echo "$*" >> "$here/calls"
while [ $# -gt 0 ]; do
  case $1 in
    --resume) dir=$2; shift ;;
    --replan) replan=1 ;;
    --set) limit=${2#*=}; shift ;;
    --nodes) nodes=$2; shift ;;
    --directory-file) told=$2; shift ;;
    *.toml) config=$1 ;;
  esac
  shift
done
if [ "$nodes" = lost:1 ]; then echo "troupe: lost:1: no answer" >&2; exit 75; fi
fails() { [ -e "$here/fails" ] && [ "$(cat "$here/fails")" = "$(wc -l < "$here/calls") $1" ]; }
if fails before; then echo "troupe: cannot write" >&2; exit 74; fi
[ -e "$here/long" ] && long=1
if [ -e "$here/last" ] && mkdir "$here/first" 2> /dev/null; then
  until [ -e "$here/trains" ] || [ $SECONDS -ge 120 ]; do :; done
  mv "$0" "$here/gone"
elif [ -e "$here/last" ]; then
  long=1
fi
if [ -e "$here/full" ]; then echo "troupe: cannot write: no space left" >&2; exit 74; fi
if [ -n "$dir" ] && [ -e "$here/moved" ] && [ -z "$replan" ]; then echo "troupe: another plan: give --replan" >&2; exit 78; fi
if [ -e "$here/watches" ]; then
  rm "$here/watches"
  until grep -q '"state":"running".*"training_to":[1-9]' "$here/runs/s/sweep.json" 2> /dev/null || [ $SECONDS -ge 120 ]; do :; done
  cp "$here/runs/s/sweep.json" "$here/seen"
fi
value() { sed -n "s/^$1 = \"\?\([^\"]*\)\"\?$/\1/p" "${config:-$dir/config.toml}" | head -1; }
if [ -e "$here/small" ] && [ -z "$dir" ] && awk "BEGIN { exit !($(value lr) > 0.8) }"; then
  echo "troupe: no memory" >&2
  exit 71
fi
if [ -z "$dir" ]; then
  dir=$(value dir)/1-$(value name)
  mkdir -p "$dir/checkpoints"
  cp "$config" "$dir/config.toml"
fi
touch "$dir/checkpoints/step-1.safetensors"
if [ -n "$long" ]; then
  trap 'echo "{\"run\": \"$dir\"}"; exit 130' INT
  echo >> "$here/trains"
  until [ $SECONDS -ge 120 ]; do sleep 0.02; done
  exit 1
fi
epochs=$(value epochs) lr=$(value lr)
stopped=null
if [ "$limit" -gt 0 ]; then epochs=$limit; stopped='"max_epochs"'; fi
echo '{"kind":"started"}' >> "$dir/metrics.jsonl"
if awk "BEGIN { exit !($lr > 0.9) }"; then
  echo '{"kind":"ledger","t":1,"epoch":0,"size":100,"done":20,"given_up":4,"omitted":4}' >> "$dir/metrics.jsonl"
  echo '{"kind":"ended","error":{"code":"diverged","message":"too fast"}}' >> "$dir/metrics.jsonl"
  echo "{\"run\": \"$dir\", \"epochs\": 1, \"stopped_by\": null, \"test\": {\"accuracy\": null}}" | tee "$dir/summary.json"
  echo "troupe: too fast" >&2
  exit 70
fi
accuracy=$(awk "BEGIN { print $lr * (1 - 0.5 / $epochs) }")
[ -e "$here/silent" ] && accuracy='null, "loss": 1'
echo '{"kind":"ended","error":null}' >> "$dir/metrics.jsonl"
if fails after; then exec > /dev/null; fi
if [ -e "$here/mute" ]; then echo "$PWD/$dir" > "$told"; exec > /dev/null; fi
echo "{\"run\": \"$dir\", \"epochs\": $epochs, \"stopped_by\": $stopped, \"test\": {\"accuracy\": $accuracy}}" | tee "$dir/summary.json"
if fails after || [ -e "$here/mute" ]; then echo "troupe: cannot write" >&2; exit 74; fi
if [ "$nodes" = late:1 ] && [ ! -e "$here/late" ]; then touch "$here/late"; echo "troupe: lost" >&2; exit 75; fi
)sh";

class RunSweepTest : public testing::Test {
 protected:
  RunSweepTest() {
    std::filesystem::permissions(train_, std::filesystem::perms::owner_all);
    auto file = grid::parse("base = \"" + base_ + "\"\n[sweep]\nruns = 9\n[grid]\ntrain.lr = { linear = [0.1, 1] }\n",
                            "s.toml", experiment::schema());
    plan_ = plan_sweep(std::move(*file), {"run.dir=" + folder_.file("runs")}, nullptr).value();
  }
  ~RunSweepTest() override { std::fclose(said_); }

  core::Result<SweepEnd> run(std::vector<std::string> slots = {""}, std::stop_token stop = {}) {
    grid::PoolOptions options;
    options.slots = std::move(slots);
    options.executable = train_;
    options.clock = clock_;
    grid::Progress progress(grid::ProgressMode::plain, said_);
    return run_sweep(plan_, options, progress, stop);
  }
  std::string said() {
    std::string text(65536, '\0');
    std::rewind(said_);
    text.resize(std::fread(text.data(), 1, text.size(), said_));
    return text;
  }
  std::size_t calls() const {
    const auto text = folder_.read("calls");
    return static_cast<std::size_t>(std::ranges::count(text, '\n'));
  }
  std::vector<SweepEvent> events() const {
    auto all = parse_sweep_log(folder_.read("runs/s/sweep.jsonl"), "log", plan_.identity).value();
    std::erase_if(all, [](const auto& event) { return event.kind == SweepEvent::Kind::pause; });
    return all;
  }

  tests::Folder folder_;
  std::string base_ = folder_.write(
      "base.toml", "[run]\nepochs = 9\n[model]\nname = \"mlp\"\nwidths = [8]\n[data]\nname = \"glyphs\"\n");
  std::string train_ = folder_.write("train", kTrain);
  core::SteadyClock steady_clock_;
  const core::Clock* clock_ = &steady_clock_;
  SweepPlan plan_;
  std::FILE* said_ = std::tmpfile();
};

}  // namespace troupe::apps
