#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "reducer/metadata/entity_store.h"
#include "reducer/sqlite/sqlite.h"

namespace tributary {

// Stores the states of entities in DIR/metadata.db.
class SqliteEntityStore final : public EntityStore {
 public:
  // If DIR/metadata.db is damaged, renames it to metadata.db.broken, logs an error, and creates an empty database.
  static absl::StatusOr<std::unique_ptr<EntityStore>> Open(const std::string& directory,
                                                           uint64_t bytes_max = uint64_t{4} << 30);

  absl::Status Save(std::span<const Row> rows) override;
  absl::Status Load(UnixNs since, absl::FunctionRef<void(const Row&)> visit) override;
  absl::StatusOr<Row> Find(const MetadataSender& sender, EntityKind kind, std::string_view id) override;
  absl::StatusOr<std::vector<MetadataSender>> Clusters() override;
  absl::StatusOr<bool> Knows(const MetadataSender& sender) override;
  absl::StatusOr<bool> Expire(UnixNs unused_before, UnixNs used_before) override;

 private:
  SqliteEntityStore(store::Database writer, store::Database reader, uint64_t bytes_max)
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
