#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tributary::store {

// A position in the committed samples of one shard, or in its process events. Exporters use it.
struct Cursor {
  int64_t chunk = 0;  // this chunk and all earlier ones are before the position
  uint64_t rows = 0;  // the first rows of chunk + 1 that are also before it
  // All samples before the position (Σ counts), also those that have expired. If the position is in the process events:
  // StoreReader::CountPassedEvents. nullopt: an earlier release wrote the chunk or the cursor, or the position is in
  // other records.
  std::optional<uint64_t> samples = 0;

  // Returns true if rows are between this position and the later position `other`.
  bool IsBefore(const Cursor& other) const { return chunk != other.chunk ? chunk < other.chunk : rows < other.rows; }
  friend bool operator==(const Cursor&, const Cursor&) = default;
};

// Identifies one run of an exporter that numbers what it sends. Random.
using ExportSession = std::array<uint8_t, 16>;

// A request that an exporter makes of the rows from its cursor to `end`. It is saved before it is sent. So if the
// reducer is killed, the next run sends a request with the same rows and the same numbers.
struct ExportRequest {
  Cursor end;
  std::string sender;  // otlp/request_identity.h
  ExportSession session{};
  uint64_t first = 0;    // number of the first sample or event of the request in the session
  uint64_t count = 0;    // rows of samples, or process events, in the request
  uint64_t content = 0;  // digest of the request's numbers: a request with another digest must get new numbers

  friend bool operator==(const ExportRequest&, const ExportRequest&) = default;
};

// An exporter's position in a shard.
struct ExportPosition {
  Cursor cursor;                         // everything before it was sent, or has expired
  std::optional<ExportRequest> request;  // begun at `cursor`; its answer is not known

  friend bool operator==(const ExportPosition&, const ExportPosition&) = default;
};

// Stores each exporter's position in a shard, together with the samples. An exporter saves its position before each
// request, and after the last one. So it sends each sample at least once, unless the sample expires first. If the
// reducer is killed, it sends only that request again whose answer it did not get, or did not save.
class PositionStore {
 public:
  virtual ~PositionStore() = default;
  // Returns nullopt if the exporter has not saved a position yet.
  virtual absl::StatusOr<std::optional<ExportPosition>> LoadPosition(std::string_view exporter, uint32_t shard) = 0;
  // The saved position survives the end of the process, however it ends. After a power loss, LoadPosition may return a
  // position that was saved some seconds earlier. So a call is cheap: it need not wait for the disk.
  virtual absl::Status SavePosition(std::string_view exporter, uint32_t shard, const ExportPosition& position) = 0;
};

}  // namespace tributary::store
