#include "reducer/sqlite/column_codec.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "reducer/sqlite/column_pieces.h"

namespace tributary::store {
namespace {

// The version of samples with a column of attributes. The first version did not have this column. Samples without
// attributes are still written in the first version.
constexpr char kAttributesVersion = 2;

// The same for tries, with the positions and names of frames.
constexpr char kPayloadVersion = 2;

// Times: the first time, then differences in units of their greatest common divisor (100 µs for times from the wire).
void AppendTimes(std::string& out, std::span<const StoredSample> samples) {
  uint64_t unit = 0;
  for (size_t i = 1; i < samples.size(); ++i) {
    unit = std::gcd(unit, static_cast<uint64_t>(samples[i].time_ns - samples[i - 1].time_ns));
  }
  unit = std::max<uint64_t>(unit, 1);
  AppendSignedVarint(out, samples.empty() ? 0 : samples.front().time_ns);
  AppendVarint(out, unit);
  for (size_t i = 1; i < samples.size(); ++i) {
    AppendVarint(out, static_cast<uint64_t>(samples[i].time_ns - samples[i - 1].time_ns) / unit);
  }
}

bool ReadTimes(VarintReader& reader, uint64_t rows, std::vector<UnixNs>* out) {
  int64_t time = 0;
  uint64_t unit = 0;
  if (!reader.ReadSigned(&time) || !reader.Read(&unit)) return false;
  out->resize(rows);
  for (uint64_t i = 0; i < rows; ++i) {
    uint64_t delta = 0;
    if (i > 0 && !reader.Read(&delta)) return false;
    time = static_cast<int64_t>(static_cast<uint64_t>(time) + delta * unit);
    (*out)[i] = UnixNs{time};
  }
  return true;
}
bool SkipTimes(VarintReader& reader, uint64_t rows) { return reader.Skip(2 + std::max<uint64_t>(rows, 1) - 1); }

// Threads: the chunk's distinct (thread, process) pairs, then one small number per sample.
void AppendThreads(std::string& out, std::span<const StoredSample> samples) {
  absl::flat_hash_map<uint64_t, uint32_t> index_of;
  std::vector<uint64_t> pairs;
  std::string indices;
  for (const StoredSample& sample : samples) {
    const uint64_t pair = uint64_t{sample.thread} << 32 | sample.process;
    auto [it, added] = index_of.try_emplace(pair, static_cast<uint32_t>(pairs.size()));
    if (added) pairs.push_back(pair);
    AppendVarint(indices, it->second);
  }
  AppendVarint(out, pairs.size());
  uint32_t thread = 0, process = 0;
  for (uint64_t pair : pairs) {
    AppendDelta(out, static_cast<uint32_t>(pair >> 32), &thread);
    AppendDelta(out, static_cast<uint32_t>(pair), &process);
  }
  out += indices;
}

// Calls `take` with each thread and its process.
template <typename Take>
bool ReadPairs(VarintReader& reader, uint64_t pairs, Take take) {
  ThreadNo thread;
  ProcessNo process;
  bool is_thread = false;
  return reader.ReadMany(2 * pairs, [&](uint64_t number) {
    const auto delta = static_cast<uint32_t>(UnZigZag(number));
    is_thread = !is_thread;
    if (is_thread) {
      thread.value += delta;
    } else {
      process.value += delta;
      take(thread, process);
    }
  });
}

bool ReadThreads(VarintReader& reader, uint64_t rows, SampleColumns* out) {
  uint64_t pair_count = 0;
  if (!reader.Read(&pair_count) || pair_count > rows) return false;
  absl::InlinedVector<std::pair<ThreadNo, ProcessNo>, 64> pairs;  // most chunks have few
  const auto add = [&pairs](ThreadNo thread, ProcessNo process) { pairs.emplace_back(thread, process); };
  if (!ReadPairs(reader, pair_count, add)) return false;
  out->threads.resize(rows);
  out->processes.resize(rows);
  for (uint64_t i = 0; i < rows; ++i) {
    uint64_t index = 0;
    if (!reader.Read(&index) || index >= pairs.size()) return false;
    out->threads[i] = pairs[index].first;
    out->processes[i] = pairs[index].second;
  }
  return true;
}

using RowsOfSamples = absl::InlinedVector<uint32_t, 256>;  // most chunks have fewer samples

// Reads the pairs as rows of `out`, and the row of each sample into `*row_of`.
bool ReadThreads(VarintReader& reader, uint64_t samples, ThreadWeights* out, RowsOfSamples* row_of) {
  uint64_t pairs = 0;
  if (!reader.Read(&pairs) || pairs > samples) return false;
  out->threads.resize(pairs);
  out->processes.resize(pairs);
  out->values.assign(pairs, 0);
  out->counts.assign(pairs, 0);
  size_t pair = 0;
  const auto put = [&](ThreadNo thread, ProcessNo process) {
    out->threads[pair] = thread;
    out->processes[pair++] = process;
  };
  if (!ReadPairs(reader, pairs, put)) return false;
  row_of->resize(samples);
  constexpr uint64_t kOneByteNumbers = 128;  // numbers below it take one byte
  if (pairs <= kOneByteNumbers) {
    std::string_view indices;
    if (!reader.ReadBytes(samples, &indices)) return false;
    for (uint64_t i = 0; i < samples; ++i) (*row_of)[i] = static_cast<uint8_t>(indices[i]);
  } else {
    for (uint32_t& row : *row_of) {
      uint64_t index = 0;
      if (!reader.Read(&index)) return false;
      row = static_cast<uint32_t>(std::min<uint64_t>(index, UINT32_MAX));
    }
  }
  return std::ranges::all_of(*row_of, [pairs](uint32_t row) { return row < pairs; });
}

// Adds a column of runs to the rows of its samples.
bool AddRuns(VarintReader& reader, std::span<const uint32_t> row_of, std::vector<uint64_t>* sums) {
  size_t i = 0;
  return ReadRuns(reader, row_of.size(), [&](uint64_t value) { (*sums)[row_of[i++]] += value; });
}

bool ReadValues(VarintReader& reader, uint64_t rows, SampleColumns* out) {
  return ReadRunsInto(reader, rows, &out->values, [](uint64_t v) { return v; }) &&
         ReadRunsInto(reader, rows, &out->counts, [](uint64_t v) { return static_cast<uint32_t>(v); });
}

void Clear(SampleColumns* columns) {
  columns->times.clear();
  columns->processes.clear();
  columns->threads.clear();
  columns->nodes.clear();
  columns->values.clear();
  columns->counts.clear();
  columns->endings.clear();
  columns->cpus.clear();
  columns->attributes.clear();
}

}  // namespace

std::string EncodeSamples(std::span<const StoredSample> samples) {
  const bool has_attributes =
      std::any_of(samples.begin(), samples.end(), [](const StoredSample& sample) { return sample.attributes != 0; });
  std::string out(1, has_attributes ? kAttributesVersion : kColumnVersion);
  AppendVarint(out, samples.size());
  AppendTimes(out, samples);
  AppendThreads(out, samples);
  uint32_t node = 0;
  for (const StoredSample& sample : samples) AppendDelta(out, sample.node, &node);
  AppendRuns(out, samples, [](const StoredSample& s) { return s.value; });
  AppendRuns(out, samples, [](const StoredSample& s) { return uint64_t{s.count}; });
  AppendRuns(out, samples, [](const StoredSample& s) { return static_cast<uint64_t>(s.ending); });
  for (const StoredSample& sample : samples) AppendVarint(out, sample.cpu);
  if (has_attributes) AppendRuns(out, samples, [](const StoredSample& s) { return uint64_t{s.attributes}; });
  return out;
}

absl::Status DecodeSamples(std::string_view bytes, SampleColumns* out) {
  Clear(out);
  VarintReader reader(bytes);
  char version = kAttributesVersion;
  uint64_t rows = 0;
  if (!ReadHeader(reader, &version, &rows)) return CorruptColumns("samples");
  bool ok = ReadTimes(reader, rows, &out->times) && ReadThreads(reader, rows, out) &&
            ReadIds(reader, rows, &out->nodes) && ReadValues(reader, rows, out);
  // This release cannot name the ending of a later release.
  ok = ok && ReadRunsInto(reader, rows, &out->endings,
                          [](uint64_t v) { return v < kEndingCount ? static_cast<Ending>(v) : Ending::kUnknown; });
  if (ok) out->cpus.resize(rows);
  for (uint64_t i = 0; ok && i < rows; ++i) {
    uint64_t cpu = 0;
    ok = reader.Read(&cpu);
    out->cpus[i] = static_cast<uint16_t>(cpu);
  }
  if (version == kAttributesVersion) {
    ok = ok &&
         ReadRunsInto(reader, rows, &out->attributes, [](uint64_t v) { return StringId{static_cast<uint32_t>(v)}; });
  }
  if (!ok || !reader.AtEnd()) return CorruptColumns("samples");
  return absl::OkStatus();
}

absl::Status DecodeThreadWeights(std::string_view bytes, ThreadWeights* out) {
  RowsOfSamples row_of;
  VarintReader reader(bytes);
  char version = kAttributesVersion;
  uint64_t samples = 0;
  if (!ReadHeader(reader, &version, &samples) || !SkipTimes(reader, samples) ||
      !ReadThreads(reader, samples, out, &row_of) || !reader.Skip(samples) || !AddRuns(reader, row_of, &out->values) ||
      !AddRuns(reader, row_of, &out->counts)) {
    return CorruptColumns("samples");
  }
  return absl::OkStatus();
}

namespace {

// `trie` contains the nodes after the first `nodes_before` nodes. Encodes its nodes from `first_node` on.
std::string EncodeTriePiece(const Trie& trie, size_t nodes_before, size_t first_node, size_t first_frame) {
  const std::span<const FrameRow> added = std::span(trie.frame_rows).subspan(first_frame);
  const bool has_payload = std::any_of(added.begin(), added.end(),
                                       [](const FrameRow& row) { return row.position != 0 || row.name.value != 0; });
  std::string out(1, has_payload ? kPayloadVersion : kColumnVersion);
  AppendVarint(out, added.size());
  AppendVarint(out, trie.parents.size() - first_node);
  uint64_t address = 0;
  uint32_t executable = 0;
  for (const FrameRow& row : added) {
    AppendVarint(out, static_cast<uint64_t>(row.kind) << 1 | (row.is_caller ? 1 : 0));
    AppendDelta(out, row.executable.value, &executable);
    AppendSignedVarint(out, static_cast<int64_t>(row.address - address));
    address = row.address;
  }
  if (has_payload) {
    AppendDifferences(out, added, [](const FrameRow& row) { return uint64_t{row.position}; });
    AppendRuns(out, added, [](const FrameRow& row) { return uint64_t{row.name.value}; });
  }
  uint32_t frame = 0;
  for (size_t i = first_node; i < trie.parents.size(); ++i) {
    AppendVarint(out, nodes_before + i - trie.parents[i].value);
    AppendDelta(out, trie.frames[i], &frame);
  }
  return out;
}

// `trie` contains the nodes and frames after the first `nodes_before` nodes and `frames_before` frames.
absl::Status AppendTriePiece(std::string_view bytes, size_t nodes_before, size_t frames_before, Trie* trie) {
  VarintReader reader(bytes);
  std::string_view version;
  uint64_t frames = 0, nodes = 0;
  if (!reader.ReadBytes(1, &version) || version[0] < kColumnVersion || version[0] > kPayloadVersion ||
      !reader.Read(&frames) || !reader.Read(&nodes) || frames > reader.remaining() || nodes > reader.remaining()) {
    return CorruptColumns("trie nodes");
  }
  uint64_t address = 0;
  uint32_t executable = 0;
  for (uint64_t i = 0; i < frames; ++i) {
    uint64_t kind = 0;
    int64_t delta = 0;
    if (!reader.Read(&kind) || !ReadDelta(reader, &executable) || !reader.ReadSigned(&delta)) {
      return CorruptColumns("trie frames");
    }
    address += static_cast<uint64_t>(delta);
    // This release cannot name the kind of a later release.
    const FrameKind known = IsFrameKind(kind >> 1) ? static_cast<FrameKind>(kind >> 1) : FrameKind::kUnknown;
    trie->frame_rows.push_back(FrameRow{known, (kind & 1) != 0, ExecutableNo{executable}, address, 0, {}});
  }
  if (version[0] == kPayloadVersion) {
    const std::span<FrameRow> added = std::span(trie->frame_rows).subspan(trie->frame_rows.size() - frames);
    size_t i = 0;
    if (!ReadDifferences(reader, added, [](FrameRow& row, uint64_t v) { row.position = static_cast<uint32_t>(v); }) ||
        !ReadRuns(reader, frames, [&](uint64_t v) { added[i++].name = StringId{static_cast<uint32_t>(v)}; })) {
      return CorruptColumns("trie frames");
    }
  }
  uint32_t frame = 0;
  for (uint64_t i = 0; i < nodes; ++i) {
    const uint64_t self = nodes_before + trie->parents.size();
    uint64_t distance = 0;
    if (!reader.Read(&distance) || distance == 0 || distance > self || !ReadDelta(reader, &frame) ||
        frame >= frames_before + trie->frame_rows.size() || self >= std::numeric_limits<uint32_t>::max()) {
      return CorruptColumns("trie nodes");
    }
    trie->parents.push_back(NodeNo{static_cast<uint32_t>(self - distance)});
    trie->frames.push_back(frame);
  }
  if (!reader.AtEnd()) return CorruptColumns("trie nodes");
  return absl::OkStatus();
}

}  // namespace

std::string EncodeTriePiece(const Trie& trie, size_t first_node, size_t first_frame) {
  return EncodeTriePiece(trie, 0, first_node, first_frame);
}

std::string EncodeTriePiece(const TrieTail& tail) { return EncodeTriePiece(tail.added, tail.first_node, 0, 0); }

absl::Status AppendTriePiece(std::string_view bytes, Trie* trie) { return AppendTriePiece(bytes, 0, 0, trie); }

absl::Status AppendTriePiece(std::string_view bytes, TrieTail* tail) {
  return AppendTriePiece(bytes, tail->first_node, tail->first_frame, &tail->added);
}

std::string EncodeCounters(std::span<const uint64_t> counters) {
  std::string out;
  for (uint64_t n : counters) AppendVarint(out, n);
  return out;
}

void DecodeCounters(std::string_view bytes, std::span<uint64_t> out) {
  VarintReader reader(bytes);
  for (uint64_t& n : out) {
    n = 0;
    reader.Read(&n);  // past the end it leaves 0
  }
}

}  // namespace tributary::store
