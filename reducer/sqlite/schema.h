#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "reducer/sqlite/sqlite.h"

namespace tributary::store {

constexpr int64_t kShardSchema = 18;  // number of migrations of a shard's file

// Open the store's files with the settings that the store's guarantees depend on. WAL: readers see a snapshot and never
// wait. synchronous=FULL: a commit that has returned survives a power cut. Incremental auto-vacuum: the file shrinks
// when retention has deleted data. Opening for writing creates the file and applies migrations (schemas/sql/).
absl::StatusOr<Database> OpenShardForWriting(const std::string& path);
absl::StatusOr<Database> OpenDirectoryForWriting(const std::string& path);  // store.db: cursors and layout
// Returns NotFound if the file does not exist yet.
absl::StatusOr<Database> OpenShardForReading(const std::string& path);

}  // namespace tributary::store
