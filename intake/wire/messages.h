#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "profile/batch.h"
#include "profile/model.h"
#include "profile/row_batch.h"

// The protocol's messages as plain structs, and their Cap'n Proto form (schemas/intake/intake.capnp). Encoders return
// the payload of a frame. Decoders take hostile input: they have a traversal limit and list limits, and check every
// reference. They return InvalidArgument unless the payload is a valid message.

namespace tributary::intake {

// The purpose of a session. 2 is reserved on the wire (it was for uploads): reducers refuse it, like every unknown
// role.
enum class Role : uint16_t { kNode = 0, kCluster = 1, kReplay = 3 };
// The prefix of the node id of a cluster's session. No other node id may have it, so that a credential for a node is
// not valid for a cluster, and the reverse.
constexpr std::string_view kClusterIdPrefix = "cluster/";

struct Hello {
  uint16_t version_min = 1, version_max = 1;
  uint64_t features = 0;
  Role role = Role::kNode;
  SessionInfo session;
  uint32_t dictionary_generation = 0;  // of the definitions counted in `sent`
  DictionaryCounts sent;               // definitions of this generation that were sent so far
  uint64_t next_sequence = 1;          // of the oldest batch that the sender holds, else of the next one
  ClockPair clock;
  std::string token;  // bearer token; unused unless the reducer requires one
};

struct Welcome {
  uint16_t version = 1;
  uint64_t features = 0;
  uint64_t durable_sequence = 0;  // batches up to here are stored: drop them
  bool dictionary_kept = false;   // the generation in Hello is known; definitions continue at `have`
  DictionaryCounts have;
  uint32_t credit_bytes = 16u << 20;  // frame bytes that may be sent and not yet acknowledged
  uint32_t dictionary_nodes_max = 131'072;
  uint32_t heartbeat_ms = 5000;
};

// A received batch. The session fills in source and node. A message of definitions alone has sequence 0 and no samples.
struct IncomingBatch : RowBatch {
  uint64_t nodes_hash = 0;      // Dictionary::rolling_hash of the sender after the definitions
  uint32_t unknown_values = 0;  // enum values of a later release, read as unknown
};

// The part of a table that a reducer has from an interrupted upload.
struct SymbolPart {
  uint64_t offset = 0;  // number of bytes that the reducer has; 0: none
  uint64_t total_bytes = 0, raw_bytes = 0, key = 0;

  friend bool operator==(const SymbolPart&, const SymbolPart&) = default;
};

struct SymbolRequest {
  ExecutableId id;
  SymbolPart part;

  friend bool operator==(const SymbolRequest&, const SymbolRequest&) = default;
};

struct SymbolChunk {
  ExecutableId id;
  uint64_t offset = 0;       // of `bytes` in the stored table
  uint64_t total_bytes = 0;  // of the zstd-compressed encoded SymbolTable
  uint64_t raw_bytes = 0;    // of the encoded SymbolTable
  std::string bytes;         // ≤ 64 KiB
  std::string unavailable;   // if not "": why there is no table; the other fields are then empty
  uint64_t key = 0;          // PackedTable::key; 0: a sender of an earlier release
};
constexpr size_t kSymbolChunkBytes = 64u << 10;

struct Goodbye {
  std::string reason;
  bool retry = true;               // false: a retry without a change is useless (version, credential)
  uint64_t rejected_sequence = 0;  // not 0: this batch is malformed; sending it again is useless
};

// The encoders cut texts that are longer than their limit.
constexpr size_t kTextBytesMax = 256;
constexpr size_t kTokenBytesMax = 4096;
constexpr size_t kReasonBytesMax = 512;
constexpr size_t kNeedSymbolsMax = 256;

std::string EncodeHello(const Hello& hello);
absl::StatusOr<Hello> DecodeHello(std::string_view payload);
std::string EncodeWelcome(const Welcome& welcome);
absl::StatusOr<Welcome> DecodeWelcome(std::string_view payload);
std::string EncodeAck(uint64_t sequence);
absl::StatusOr<uint64_t> DecodeAck(std::string_view payload);
std::string EncodeNeedDictionary(uint32_t generation);  // the generation that the reducer gave up
absl::StatusOr<uint32_t> DecodeNeedDictionary(std::string_view payload);
std::string EncodeNeedSymbols(const std::vector<SymbolRequest>& requests);  // ≤ 256
absl::StatusOr<std::vector<SymbolRequest>> DecodeNeedSymbols(std::string_view payload);
std::string EncodeSymbolChunk(const SymbolChunk& chunk);
absl::StatusOr<SymbolChunk> DecodeSymbolChunk(std::string_view payload);
std::string EncodeHeartbeat(MonotonicNs sent_at);
absl::StatusOr<MonotonicNs> DecodeHeartbeat(std::string_view payload);
std::string EncodeGoodbye(const Goodbye& goodbye);
absl::StatusOr<Goodbye> DecodeGoodbye(std::string_view payload);

}  // namespace tributary::intake
