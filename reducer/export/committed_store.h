#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "reducer/store/fake_store.h"

namespace tributary::store {

// The store in memory for tests of exporters: its samples count as committed in the order they were added, and it keeps
// cursors.
class CommittedStore : public FakeStore {
 public:
  using FakeStore::FakeStore;

  absl::StatusOr<std::unique_ptr<StoreReader>> OpenReader(uint32_t shard) override {
    ++readers_opened;
    return std::make_unique<Reader>(shards[shard]);
  }
  CursorStore& cursors() override { return kept_; }

  class Cursors : public CursorStore {
   public:
    absl::StatusOr<int64_t> LoadCursor(std::string_view exporter, uint32_t shard) override {
      return positions[{std::string(exporter), shard}];
    }
    absl::Status SaveCursor(std::string_view exporter, uint32_t shard, int64_t cursor) override {
      positions[{std::string(exporter), shard}] = cursor;
      return absl::OkStatus();
    }
    std::map<std::pair<std::string, uint32_t>, int64_t> positions;
  };
  Cursors& kept() { return kept_; }

  int readers_opened = 0;

 private:
  class Reader : public FakeReader {
   public:
    explicit Reader(FakeShard& shard) : FakeReader(shard), committed_(shard) {}

    absl::StatusOr<int64_t> ScanCommitted(int64_t cursor, size_t samples_max,
                                          const std::function<absl::Status(const SampleColumns&)>& visit) override {
      if (committed_.error) return *committed_.error;
      size_t next = static_cast<size_t>(cursor);
      size_t end = std::min(committed_.samples.size(), next + samples_max);
      for (; next < end; ++next) {
        const FakeShard::Sample& sample = committed_.samples[next];
        SampleColumns columns{.node_id = sample.node_id, .type = sample.type, .day = FakeShard::DayOf(sample.time)};
        columns.times.push_back(sample.time);
        columns.processes.push_back(sample.process);
        columns.threads.push_back(sample.thread);
        columns.nodes.push_back(sample.node);
        columns.values.push_back(sample.value);
        columns.counts.push_back(sample.count);
        columns.endings.push_back(sample.ending);
        columns.cpus.push_back(0);
        columns.attributes.push_back(sample.attributes);
        RETURN_IF_ERROR(visit(columns));
      }
      return static_cast<int64_t>(next);
    }

   private:
    FakeShard& committed_;
  };

  Cursors kept_;
};

}  // namespace tributary::store
