#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/log.h"
#include "test/simulator/run.h"

// Usage: simulator [--seed N] [--seeds COUNT] [--faults KINDS] [--break RULE] [--outage] [--trace] [--find]
// [--keep-going]

namespace tributary::sim {
namespace {

struct Arguments {
  uint64_t seed = 1, seeds = 1;
  Break broken = Break::kNone;
  std::string_view break_name;
  std::string faults = "nrcde";
  bool outage = false;  // the receivers of the exports are away for an hour
  bool trace = false;
  bool find = false;        // breaks every rule in turn; each break must be noticed within `seeds` seeds
  bool keep_going = false;  // continues after a seed that failed
};

[[noreturn]] void Usage() {
  std::fputs(
      "usage: simulator [--seed N] [--seeds COUNT] [--faults nrcde] [--outage] [--trace] [--break RULE] [--find] "
      "[--keep-going]\nrules:",
      stderr);
  for (const BreakName& rule : kBreaks) std::fprintf(stderr, " %s", std::string(rule.name).c_str());
  std::fputs("\n", stderr);
  std::exit(2);
}

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  auto number = [&](int& i) -> uint64_t {
    if (++i >= argc) Usage();
    return std::strtoull(argv[i], nullptr, 10);
  };
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--seed") {
      arguments.seed = number(i);
    } else if (name == "--seeds") {
      arguments.seeds = number(i);
    } else if (name == "--faults" && ++i < argc) {
      arguments.faults = argv[i];
    } else if (name == "--outage") {
      arguments.outage = true;
    } else if (name == "--trace") {
      arguments.trace = true;
    } else if (name == "--find") {
      arguments.find = true;
    } else if (name == "--keep-going") {
      arguments.keep_going = true;
    } else if (name == "--break" && ++i < argc) {
      for (const BreakName& rule : kBreaks) {
        if (rule.name == argv[i]) arguments.broken = rule.rule, arguments.break_name = rule.name;
      }
      if (arguments.broken == Break::kNone) Usage();
    } else {
      Usage();
    }
  }
  return arguments;
}

// Runs the seeds. Returns the first seed whose run breaks a rule.
std::optional<uint64_t> RunSeeds(const Arguments& arguments, Break broken, bool quiet) {
  Result sum;
  const auto start = std::chrono::steady_clock::now();
  std::optional<uint64_t> bad;
  uint64_t seed = arguments.seed;
  for (; seed < arguments.seed + arguments.seeds && (!bad || arguments.keep_going); ++seed) {
    const Result result = Run(seed, broken, arguments.faults, arguments.outage, arguments.trace).Execute();
    sum.events += result.events;
    sum.captured += result.captured;
    sum.stored += result.stored;
    sum.faults += result.faults;
    sum.exported += result.exported;
    sum.exported_twice += result.exported_twice;
    sum.hash = sum.hash * 31 + result.hash;
    for (size_t i = 0; i < kLossReasonCount; ++i) sum.lost[i] += result.lost[i];
    if (result.violation.empty()) continue;
    if (!bad) bad = seed;
    if (quiet) continue;
    const std::string rule = broken == Break::kNone ? "" : fmt::format(" --break {}", arguments.break_name);
    std::printf("%s\n", fmt::format("seed {}: {}\nreplay: simulator --seed {} --faults {}{}{} --trace", seed,
                                    result.violation, seed, arguments.faults, rule, arguments.outage ? " --outage" : "")
                            .c_str());
  }
  if (quiet) return bad;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf(
      "%s\n",
      fmt::format(
          "seeds={} events={} faults={} captured={} stored={} captured_process_events={} "
          "stored_process_events={} exported={} exported_twice={} hash={:016x} seconds={:.1f} seeds_per_second={:.1f}",
          seed - arguments.seed, sum.events, sum.faults, sum.captured.total(), sum.stored.total(),
          sum.captured.events(), sum.stored.events(), sum.exported, sum.exported_twice, sum.hash, seconds,
          static_cast<double>(seed - arguments.seed) / seconds)
          .c_str());
  for (uint8_t i = 0; i < kLossReasonCount; ++i) {
    if (sum.lost[i].empty()) continue;
    std::printf("%s\n", fmt::format("lost {} {} process_events={}", LossReasonName(static_cast<LossReason>(i)),
                                    sum.lost[i].total(), sum.lost[i].events())
                            .c_str());
  }
  return bad;
}

int FindAll(const Arguments& arguments) {
  int missed = 0;
  for (const BreakName& rule : kBreaks) {
    const std::optional<uint64_t> seed = RunSeeds(arguments, rule.rule, /*quiet=*/true);
    if (seed) {
      const Result found = Run(*seed, rule.rule, arguments.faults, arguments.outage, false).Execute();
      std::printf("%s\n",
                  fmt::format("{}: noticed after {} seeds: {}", rule.name, *seed - arguments.seed + 1, found.violation)
                      .c_str());
    } else {
      std::printf("%s\n", fmt::format("{}: NOT noticed in {} seeds", rule.name, arguments.seeds).c_str());
      ++missed;
    }
  }
  return missed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tributary::sim

int main(int argc, char** argv) {
  const tributary::sim::Arguments arguments = tributary::sim::Parse(argc, argv);
  tributary::InitLog({.level = arguments.trace ? tributary::LogLevel::kDebug : tributary::LogLevel::kCritical});
  if (arguments.find) return tributary::sim::FindAll(arguments);
  return tributary::sim::RunSeeds(arguments, arguments.broken, false) ? 1 : 0;
}
