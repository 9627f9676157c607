// Measures the parts of symbolization for symbols.py, which compares them with other programs (docs/benchmarks.md).
// Each command prints its figures as JSON. Times are CPU times of this thread, the best of several passes.
//   symbols_bench extract FILE TABLE            debug information to a flat table
//   symbols_bench pack TABLE                    bytes of a table, mapped and at rest
//   symbols_bench addresses TABLE COUNT OUT     random addresses of lines, 8 bytes each
//   symbols_bench lookup TABLE ADDRESSES ANSWERS
//   symbols_bench flamegraph TABLE ADDRESSES COUNT   one flame graph of COUNT different addresses

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <fstream>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mapped_file.h"
#include "base/metrics.h"
#include "base/status.h"
#include "base/zstd.h"
#include "reducer/query/query_engine.h"
#include "reducer/store/fake_store_testing.h"
#include "reducer/symbolizer/symbol_store.h"
#include "symbols/debug_symbols.h"
#include "symbols/symbol_codec.h"

namespace tributary {
namespace {

constexpr int kPasses = 5;
constexpr uint64_t kDebugBytesMax = uint64_t{4} << 30;
constexpr int kRestingLevel = 3;        // the symbol store's compression level
constexpr size_t kNodesShown = 50'000;  // the number that the web page requests

double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

template <typename Work>
double BestSeconds(int passes, Work&& work) {
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i < passes; ++i) {
    const double started = CpuSeconds();
    work();
    best = std::min(best, CpuSeconds() - started);
  }
  return best;
}

void WriteFile(const char* path, const void* bytes, size_t size) {
  std::ofstream out(path, std::ios::binary);
  out.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  TRIBUTARY_CHECK(out.good());
}

std::vector<uint64_t> ReadAddresses(const char* path) {
  const MappedFile file = *MappedFile::Open(path);
  std::vector<uint64_t> addresses(file.bytes().size() / sizeof(uint64_t));
  std::memcpy(addresses.data(), file.bytes().data(), addresses.size() * sizeof(uint64_t));
  return addresses;
}

int Extract(const char* path, const char* out) {
  const std::unique_ptr<ElfFile> file = *ElfFile::Open(Fd(open(path, O_RDONLY | O_CLOEXEC)));
  const double started = CpuSeconds();
  const absl::StatusOr<DebugSymbols> symbols =
      ReadDebugSymbols(*file, *file->Identity(), DebugFileSource(), kDebugBytesMax);
  TRIBUTARY_CHECK(symbols.ok());
  const double seconds = CpuSeconds() - started;
  const SymbolTable& table = *symbols->table;
  WriteFile(out, table.bytes().data(), table.bytes().size());
  fmt::print(
      "{{\"seconds\": {:.4f}, \"rows\": {}, \"nodes\": {}, \"functions\": {}, \"units\": {}, \"malformed\": {}}}\n",
      seconds, table.row_count(), table.node_count(), table.function_count(), symbols->counts.units,
      symbols->counts.malformed);
  return 0;
}

int Pack(const char* path) {
  const std::shared_ptr<const SymbolTable> table = *SymbolTable::Map(path);
  const std::string encoded = EncodeSymbolTable(*table);
  fmt::print("{{\"flat\": {}, \"encoded\": {}, \"resting\": {}}}\n", table->bytes().size(), encoded.size(),
             ZstdCompress(encoded, kRestingLevel).size());
  return 0;
}

int Addresses(const char* path, const char* count, const char* out) {
  const std::shared_ptr<const SymbolTable> table = *SymbolTable::Map(path);
  const auto rows = static_cast<uint32_t>(table->row_count());
  const uint64_t first = table->row_address(0), last = table->row_address(rows - 1);
  std::mt19937_64 random(1);
  std::vector<uint64_t> addresses;
  while (addresses.size() < std::stoul(count)) {
    const uint64_t address = first + random() % (last - first);
    const uint32_t row = table->FindRow(address);
    if (row == SymbolTable::kNoRow || table->node(row) == 0) continue;
    table->ForEachFrame(row, [&](const SymbolTable::Frame& frame) {
      if (frame.line != 0) addresses.push_back(address);
      return false;
    });
  }
  WriteFile(out, addresses.data(), addresses.size() * sizeof(uint64_t));
  fmt::print("{{\"addresses\": {}}}\n", addresses.size());
  return 0;
}

uint64_t Touch(std::string_view text) {
  return text.empty() ? 0
                      : static_cast<uint64_t>(static_cast<uint8_t>(text.front()) + static_cast<uint8_t>(text.back()));
}

class Hash {  // FNV-1a
 public:
  void Add(std::string_view bytes) {
    for (char byte : bytes) value_ = (value_ ^ static_cast<uint8_t>(byte)) * 16'777'619u;
  }
  uint32_t value() const { return value_; }

 private:
  uint32_t value_ = 2'166'136'261u;
};

// Returns the answer for each address, for a comparison: the number of frames, a hash of their lines, and a hash of the
// names of inlined frames. The outermost frame's name is not compared: it may be the linker's symbol or DWARF's name.
std::vector<uint32_t> Answers(const SymbolTable& table, std::span<const uint64_t> addresses) {
  std::vector<uint32_t> answers;
  for (uint64_t address : addresses) {
    uint32_t depth = 0;
    Hash lines, names;
    if (const uint32_t row = table.FindRow(address); row != SymbolTable::kNoRow) {
      table.ForEachFrame(row, [&](const SymbolTable::Frame& frame) {
        ++depth;
        lines.Add({reinterpret_cast<const char*>(&frame.line), sizeof(frame.line)});
        if (frame.inlined) names.Add(frame.name);
        return true;
      });
    }
    answers.insert(answers.end(), {depth, lines.value(), names.value()});
  }
  return answers;
}

int Lookup(const char* path, const char* addresses_path, const char* answers_path) {
  std::vector<double> opens;
  std::shared_ptr<const SymbolTable> table;
  for (int i = 0; i < 101; ++i) {
    table = nullptr;
    opens.push_back(BestSeconds(1, [&] { table = *SymbolTable::Map(path); }));
  }
  std::nth_element(opens.begin(), opens.begin() + 50, opens.end());

  const std::vector<uint64_t> addresses = ReadAddresses(addresses_path);
  uint64_t touched = 0, frames = 0;
  auto touch_all = [&](uint32_t row) {
    if (row == SymbolTable::kNoRow) return;
    table->ForEachFrame(row, [&](const SymbolTable::Frame& frame) {
      touched += Touch(frame.name) + Touch(frame.file) + frame.line;
      ++frames;
      return true;
    });
  };
  auto random = [&] {
    for (uint64_t address : addresses) touch_all(table->FindRow(address));
  };
  const double first_s = BestSeconds(1, random);
  const uint64_t frames_once = frames;
  const double random_s = BestSeconds(kPasses, random);

  std::vector<uint64_t> sorted = addresses;
  std::sort(sorted.begin(), sorted.end());
  std::vector<uint32_t> rows(sorted.size());
  const double found_s = BestSeconds(kPasses, [&] { table->FindRows(sorted, rows); });
  const double sorted_s = BestSeconds(kPasses, [&] {
    table->FindRows(sorted, rows);
    for (uint32_t row : rows) touch_all(row);
  });

  const std::vector<uint32_t> answers = Answers(*table, addresses);
  WriteFile(answers_path, answers.data(), answers.size() * sizeof(uint32_t));
  const auto count = static_cast<double>(addresses.size());
  fmt::print(
      "{{\"open_ms\": {:.4f}, \"first_per_s\": {:.0f}, \"random_per_s\": {:.0f}, \"sorted_rows_per_s\": {:.0f}, "
      "\"sorted_per_s\": {:.0f}, \"frames\": {}, \"touched\": {}}}\n",
      opens[50] * 1e3, count / first_s, count / random_s, count / found_s, count / sorted_s, frames_once, touched);
  return 0;
}

// A reader of a store with one day that is already loaded: the benchmark measures naming, not the store.
class ReadyReader : public store::FakeReader {
 public:
  ReadyReader(store::FakeShard& shard, std::shared_ptr<const store::Trie> trie, const store::SumColumns& sums)
      : store::FakeReader(shard), trie_(std::move(trie)), sums_(sums) {}

  absl::StatusOr<std::vector<store::ProcessRow>> Processes(store::TimeRange, const store::ProcessSet*) override {
    store::ProcessRow row;
    row.no = store::ProcessNo{1};
    return std::vector<store::ProcessRow>{row};
  }
  absl::StatusOr<store::TrieView> LoadTrie(store::Day) override { return store::TrieView(trie_); }
  absl::Status ScanSums(store::TimeRange, const store::ScanFilter&, const store::SumVisitor& visit) override {
    return visit(sums_);
  }

 private:
  std::shared_ptr<const store::Trie> trie_;
  const store::SumColumns& sums_;
};

class ReadyStore : public store::FakeStore {
 public:
  absl::StatusOr<std::unique_ptr<store::StoreReader>> OpenReader(uint32_t shard) override {
    return std::make_unique<ReadyReader>(shards[shard], trie, sums);
  }
  std::shared_ptr<const store::Trie> trie;
  store::SumColumns sums;
};

// Makes one node per address, each below a random older node. The stacks are a dozen frames deep on average, and no two
// nodes have the same code.
void Grow(const std::vector<uint64_t>& addresses, store::ExecutableNo executable, ReadyStore* store) {
  auto trie = std::make_shared<store::Trie>();
  trie->parents = {store::NodeNo{0}};
  trie->frames = {0};
  trie->frame_rows.resize(1);
  std::mt19937_64 random(2);
  for (uint64_t address : addresses) {
    const auto node = static_cast<uint32_t>(trie->parents.size());
    const auto parent = static_cast<uint32_t>(random() % node);
    trie->frame_rows[trie->frames[parent]].is_caller = true;
    trie->parents.push_back(store::NodeNo{parent});
    trie->frames.push_back(node);
    trie->frame_rows.push_back({FrameKind::kNative, false, executable, address});
    store->sums.processes.push_back(store::ProcessNo{1});
    store->sums.nodes.push_back(store::NodeNo{node});
    store->sums.values.push_back(1 + random() % 100);
    store->sums.counts.push_back(1);
  }
  store->trie = std::move(trie);
  store->sums.type = store::TypeNo{1};  // the fake store's CPU time
}

int DrawFlameGraph(const char* path, const char* addresses_path, const char* count) {
  const std::shared_ptr<const SymbolTable> table = *SymbolTable::Map(path);
  std::vector<uint64_t> addresses = ReadAddresses(addresses_path);
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  std::shuffle(addresses.begin(), addresses.end(), std::mt19937_64(3));
  addresses.resize(std::min<size_t>(addresses.size(), std::stoul(count)));

  FakeClock clock;
  Metrics metrics;
  const std::unique_ptr<SymbolStore> symbols =
      *SymbolStore::Open({.directory = std::string(path) + ".store"}, clock, metrics);
  TRIBUTARY_CHECK(symbols->Put(table->id(), EncodeSymbolTable(*table), SymbolOrigin::kUpload).ok());
  ReadyStore store;
  Grow(addresses, store.shards[0].AddExecutable(table->id(), "/opt/program"), &store);
  QueryEngine engine(store, *symbols);
  const QueryRequest request{.selector = *Selector::Parse("{}"), .range = {UnixNs{0}, UnixNs{kNsPerMinute}}};
  FlameGraph graph;
  auto draw = [&] { graph = *engine.QueryFlameGraph(request, kNodesShown); };
  const double first_s = BestSeconds(1, draw);
  const double warm_s = BestSeconds(kPasses, draw);
  TRIBUTARY_CHECK(graph.parents.size() > 1);
  fmt::print(
      "{{\"addresses\": {}, \"first_ms\": {:.2f}, \"warm_ms\": {:.2f}, \"function_nodes\": {}, \"names\": {}}}\n",
      addresses.size(), first_s * 1e3, warm_s * 1e3, graph.parents.size() + graph.truncated_nodes, graph.names.size());
  return 0;
}

int Run(std::span<char*> arguments) {
  const std::string_view command = arguments.size() > 1 ? arguments[1] : "";
  if (command == "extract" && arguments.size() == 4) return Extract(arguments[2], arguments[3]);
  if (command == "pack" && arguments.size() == 3) return Pack(arguments[2]);
  if (command == "addresses" && arguments.size() == 5) return Addresses(arguments[2], arguments[3], arguments[4]);
  if (command == "lookup" && arguments.size() == 5) return Lookup(arguments[2], arguments[3], arguments[4]);
  if (command == "flamegraph" && arguments.size() == 5) return DrawFlameGraph(arguments[2], arguments[3], arguments[4]);
  fmt::print(stderr, "usage: see the head of symbols_bench.cc\n");
  return 2;
}

}  // namespace
}  // namespace tributary

int main(int argc, char** argv) { return tributary::Run({argv, static_cast<size_t>(argc)}); }
