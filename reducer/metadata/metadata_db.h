#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/metadata/entity_timeline.h"
#include "reducer/metadata/metadata_sink.h"
#include "reducer/store/sqlite.h"

namespace tributary {

// The states of entities in DIR/metadata.db. One thread writes, another may Find at the same time.
class MetadataDb {
 public:
  // A damaged file is set aside (OpenOrBeginAnew). FailedPrecondition: it is a newer release's.
  static absl::StatusOr<std::unique_ptr<MetadataDb>> Open(const std::string& path, uint64_t bytes_max);

  struct Row {
    MetadataTeller teller;
    EntityKind kind{};
    std::string id;
    bool used = false;
    bool ended_unseen = false;  // it was told only when it had gone: what is known of it already is as good
    std::vector<EntityTimeline::State> states;
  };
  // One transaction. Of each entity, states from the first of `states` on are replaced; those before stay. Without
  // states: only `used` is written, which is never taken back.
  absl::Status Save(std::span<const Row> rows);
  // Every state that holds or ended after `since`, those of one entity one after the other, in order of time.
  absl::Status Load(UnixNs since, absl::FunctionRef<void(const Row&)> visit);
  // No states: not known.
  absl::StatusOr<Row> Find(const MetadataTeller& teller, EntityKind kind, std::string_view id);
  absl::StatusOr<std::vector<MetadataTeller>> Clusters();
  // Whether there is anything that it told.
  absl::StatusOr<bool> Knows(const MetadataTeller& teller);

  // Removes states that ended before `unused_before` and belong to no sample, all that ended before `used_before`, and
  // the oldest of those that ended when the file is larger than it may be. A bounded piece of work; true: there is
  // more.
  absl::StatusOr<bool> Expire(UnixNs unused_before, UnixNs used_before);

 private:
  MetadataDb(store::Database writer, store::Database reader, uint64_t bytes_max)
      : writer_(std::move(writer)), reader_(std::move(reader)), bytes_max_(bytes_max) {}
  absl::Status Prepare();
  absl::Status SaveRow(const Row& row);

  store::Database writer_;
  std::mutex reader_mutex_;
  store::Database reader_;  // guarded by reader_mutex_
  const uint64_t bytes_max_;
  store::Statement known_, remove_, insert_, mark_;  // of the writer
  store::Statement find_;                            // of the reader
};

}  // namespace tributary
