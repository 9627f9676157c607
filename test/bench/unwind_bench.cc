// Measures the compilation of unwind rows: whole files, as time per row, and units as the collector loads them.

#include <benchmark/benchmark.h>
#include <fcntl.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "elf/unwind_source.h"

namespace tributary {
namespace {

constexpr uint64_t kUnitBytes = 4u << 20;

const char* const kFiles[] = {"/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1", "/lib/x86_64-linux-gnu/libc.so.6",
                              "/lib/x86_64-linux-gnu/libstdc++.so.6"};

std::unique_ptr<UnwindSource> OpenSource(const char* path) {
  auto file = ElfFile::Open(Fd(open(path, O_RDONLY | O_CLOEXEC)));
  if (!file.ok()) return nullptr;
  auto source = UnwindSource::Open(*std::move(file));
  return source.ok() ? *std::move(source) : nullptr;
}

void BM_Open(benchmark::State& state) {
  const char* path = kFiles[state.range(0)];
  state.SetLabel(path);
  for (auto _ : state) {
    auto source = OpenSource(path);
    if (source == nullptr) return state.SkipWithError("not there");
    benchmark::DoNotOptimize(source);
  }
}
BENCHMARK(BM_Open)->DenseRange(0, 2)->Unit(benchmark::kMicrosecond);

// range(1): bytes of text that are compiled at once; 0: the maximum size of a range.
void BM_Compile(benchmark::State& state) {
  auto source = OpenSource(kFiles[state.range(0)]);
  if (source == nullptr) return state.SkipWithError("not there");
  uint64_t step = state.range(1) != 0 ? static_cast<uint64_t>(state.range(1)) : UnwindSource::kRangeBytesMax;
  AddressRange text = source->text();
  std::vector<UnwindRow> rows;
  uint64_t row_count = 0, range_count = 0;
  for (auto _ : state) {
    for (uint64_t begin = text.begin; begin < text.end; begin += std::min(step, text.end - begin)) {
      if (!source->Compile({begin, begin + std::min(step, text.end - begin)}, &rows).ok()) {
        return state.SkipWithError("compile");
      }
      row_count += rows.size();
      ++range_count;
    }
  }
  auto per_row = [&](uint64_t count) {
    return benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  };
  state.SetLabel(kFiles[state.range(0)]);
  state.counters["per_row"] = per_row(row_count);
  state.counters["per_range"] = per_row(range_count);
  state.counters["rows"] = static_cast<double>(row_count) / static_cast<double>(state.iterations());
}
BENCHMARK(BM_Compile)->ArgsProduct({{0, 1, 2}, {0, int64_t{kUnitBytes}, 64 << 10}})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tributary

BENCHMARK_MAIN();
