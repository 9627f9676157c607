#include "reducer/sqlite/sum_columns.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "reducer/sqlite/column_pieces.h"

namespace tributary::store {
namespace {

// The version with sums of threads.
constexpr char kThreadsVersion = 2;

// Values of one minute are mostly multiples of one sampling period, and the factor mostly equals the count. So the
// difference between the factor and the count is stored.
template <typename Sum>
void AppendSums(std::string& out, std::span<const Sum> sums, uint32_t Sum::* id) {
  uint32_t previous = 0, process = 0;
  for (const Sum& sum : sums) AppendDelta(out, sum.*id, &previous);
  for (const Sum& sum : sums) AppendDelta(out, sum.process, &process);
  uint64_t unit = 0;
  for (const Sum& sum : sums) unit = std::gcd(unit, sum.value);
  unit = std::max<uint64_t>(unit, 1);
  AppendVarint(out, unit);
  AppendRuns(out, sums, [](const Sum& s) { return s.count; });
  AppendRuns(out, sums, [unit](const Sum& s) { return s.value / unit - s.count; });
}

template <typename No>
bool ReadSums(VarintReader& reader, uint64_t rows, std::vector<No>* ids, std::vector<ProcessNo>* processes,
              std::vector<uint64_t>* values, std::vector<uint64_t>* counts) {
  uint64_t unit = 0;
  const auto as_is = [](uint64_t v) { return v; };
  if (!ReadIds(reader, rows, ids) || !ReadIds(reader, rows, processes) || !reader.Read(&unit) ||
      !ReadRunsInto(reader, rows, counts, as_is) || !ReadRunsInto(reader, rows, values, as_is)) {
    return false;
  }
  for (uint64_t i = 0; i < rows; ++i) (*values)[i] = ((*values)[i] + (*counts)[i]) * unit;
  return true;
}

// Reads up to the sums. `*threads`: the encoded sums of threads.
bool ReadStart(VarintReader& reader, uint64_t* rows, std::string_view* threads) {
  char version = kThreadsVersion;
  *threads = {};
  if (!ReadHeader(reader, &version, rows)) return false;
  if (version < kThreadsVersion) return true;
  uint64_t bytes = 0;
  return reader.Read(&bytes) && reader.ReadBytes(bytes, threads);
}

}  // namespace

std::string EncodeSums(std::span<const StoredSum> sums, std::span<const StoredThreadSum> threads) {
  std::string of_threads;
  AppendVarint(of_threads, threads.size());
  AppendSums(of_threads, threads, &StoredThreadSum::thread);
  std::string out(1, kThreadsVersion);
  AppendVarint(out, sums.size());
  AppendVarint(out, of_threads.size());
  out += of_threads;
  AppendSums(out, sums, &StoredSum::node);
  return out;
}

absl::Status DecodeSums(std::string_view bytes, SumColumns* out) {
  VarintReader reader(bytes);
  uint64_t rows = 0;
  std::string_view threads;
  if (!ReadStart(reader, &rows, &threads) ||
      !ReadSums(reader, rows, &out->nodes, &out->processes, &out->values, &out->counts) || !reader.AtEnd()) {
    return CorruptColumns("minute sums");
  }
  return absl::OkStatus();
}

absl::Status DecodeThreadSums(std::string_view bytes, ThreadWeights* out) {
  VarintReader reader(bytes);
  uint64_t sums = 0, rows = 0;
  std::string_view threads;
  if (!ReadStart(reader, &sums, &threads)) return CorruptColumns("minute sums");
  if (threads.empty()) {
    *out = {};
    return absl::OkStatus();
  }
  VarintReader of_threads(threads);
  if (!of_threads.Read(&rows) || rows > threads.size() ||
      !ReadSums(of_threads, rows, &out->threads, &out->processes, &out->values, &out->counts) || !of_threads.AtEnd()) {
    return CorruptColumns("minute sums");
  }
  return absl::OkStatus();
}

}  // namespace tributary::store
