#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "profile/batch.h"
#include "profile/model.h"
#include "profile/row_batch.h"

// Messages of the intake protocol as plain structs, and functions that convert them to Cap'n Proto and back
// (schemas/intake/intake.capnp). BatchEncoder and BatchDecoder convert Definitions and Batch, and metadata_message.h
// converts Metadata. Encoders return the payload of a frame. The input of decoders may be hostile. Decoders limit how
// many words they read, and the lengths of lists and texts. They return InvalidArgument unless the payload is a valid
// message.

namespace tributary::intake {

// The purpose of a session. Reducers refuse all other values. The value 2 is reserved: it was the role of uploads.
enum class Role : uint16_t { kNode = 0, kCluster = 1, kReplay = 3 };
// The prefix of the node id of a cluster's session. No other node id may have this prefix. So a credential for a node
// is not valid for a cluster, and a credential for a cluster is not valid for a node.
constexpr std::string_view kClusterIdPrefix = "cluster/";

struct Hello {
  uint16_t version_min = 1, version_max = 1;
  uint64_t features = 0;
  Role role = Role::kNode;
  SessionInfo session;
  uint32_t dictionary_generation = 0;  // of the definitions that `sent` counts; 0: none
  DictionaryCounts sent;               // definitions of this generation that were sent so far
  uint64_t next_sequence = 1;          // number of the oldest unacknowledged batch; if none, of the next batch
  ClockPair clock;
  std::string token;  // bearer token; unused unless the reducer requires one
};

// Bits of Welcome::features. The reducer stores process events: a client sends it Batch::events and their numbers.
constexpr uint64_t kFeatureProcessEvents = uint64_t{1} << 0;
// The reducer knows FrameKind::kInterpreter: others would store these frames without their addresses.
constexpr uint64_t kFeatureInterpreters = uint64_t{1} << 1;

// Bits of Hello::features. The client answers NeedDigests. Clients of earlier releases, clusters and replays do not.
constexpr uint64_t kFeatureSymbolDigests = uint64_t{1} << 0;
// The client reads OptOuts, and neither samples these containers nor reports their process events.
constexpr uint64_t kFeatureOptOuts = uint64_t{1} << 1;

struct Welcome {
  uint16_t version = 1;
  uint64_t features = 0;
  uint64_t durable_sequence = 0;  // the reducer has stored all batches up to this number: drop them
  bool dictionary_kept = false;   // the reducer has the generation of Hello; send definitions from `have` on
  DictionaryCounts have;
  uint32_t credit_bytes = 16u << 20;  // send no batch while this many bytes of frames or more are unacknowledged
  uint32_t dictionary_nodes_max = 131'072;
  uint32_t heartbeat_ms = 5000;
};

// A received batch. Decoding leaves `source` and `node` empty: the session sets them. A Definitions message becomes an
// IncomingBatch with sequence 0 and no samples.
struct IncomingBatch : RowBatch {
  uint64_t nodes_hash = 0;      // the sender's Dictionary::rolling_hash after these definitions
  uint32_t unknown_values = 0;  // number of values and columns that only a later release knows
};

// Describes the part of a compressed symbol table that a reducer has from an interrupted upload: the first bytes.
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
  uint64_t offset = 0;       // position of `bytes` in the compressed table
  uint64_t total_bytes = 0;  // size of the encoded SymbolTable after compression with zstd
  uint64_t raw_bytes = 0;    // size of the encoded SymbolTable
  std::string bytes;         // ≤ 64 KiB
  std::string unavailable;   // if not "": why there is no table; all other fields except `id` are then empty
  uint64_t key = 0;          // PackedTable::key; 0: the sender is of an earlier release, which sent no key
};
constexpr size_t kSymbolChunkBytes = 64u << 10;

// The digest of a symbol table (symbols/symbol_digest.h).
struct SymbolDigestAnswer {
  ExecutableId id;
  std::array<uint8_t, 32> sha256{};  // of the encoded table
  uint8_t source = 0;                // SymbolSource
  std::string unavailable;           // if not "": why there is no table; then there is no digest

  friend bool operator==(const SymbolDigestAnswer&, const SymbolDigestAnswer&) = default;
};

struct Goodbye {
  std::string reason;
  bool retry = true;               // false: a retry fails until a person changes something, such as the credential
  uint64_t rejected_sequence = 0;  // not 0: this batch is malformed; sending it again is useless
};

// Encoders cut texts to the first three limits.
constexpr size_t kTextBytesMax = 256;
constexpr size_t kTokenBytesMax = 4096;
constexpr size_t kReasonBytesMax = 512;
constexpr size_t kNeedSymbolsMax = 256;  // requests in one message
constexpr size_t kOptOutsMax = 4'096;    // containers in one message
constexpr size_t kOptOutIdBytesMax = 512;

std::string EncodeHello(const Hello& hello);
absl::StatusOr<Hello> DecodeHello(std::string_view payload);
std::string EncodeWelcome(const Welcome& welcome);
absl::StatusOr<Welcome> DecodeWelcome(std::string_view payload);
std::string EncodeAck(uint64_t sequence);
absl::StatusOr<uint64_t> DecodeAck(std::string_view payload);
std::string EncodeNeedDictionary(uint32_t generation);  // `generation`: the one that the reducer cannot use
absl::StatusOr<uint32_t> DecodeNeedDictionary(std::string_view payload);
std::string EncodeNeedSymbols(const std::vector<SymbolRequest>& requests);  // at most 256 requests (CHECKed)
absl::StatusOr<std::vector<SymbolRequest>> DecodeNeedSymbols(std::string_view payload);
std::string EncodeSymbolChunk(const SymbolChunk& chunk);
absl::StatusOr<SymbolChunk> DecodeSymbolChunk(std::string_view payload);
std::string EncodeNeedDigests(const std::vector<ExecutableId>& ids);  // at most 256 (CHECKed)
absl::StatusOr<std::vector<ExecutableId>> DecodeNeedDigests(std::string_view payload);
std::string EncodeSymbolDigest(const SymbolDigestAnswer& answer);
absl::StatusOr<SymbolDigestAnswer> DecodeSymbolDigest(std::string_view payload);
std::string EncodeOptOuts(const std::vector<std::string>& containers);  // at most 4,096 valid ids (CHECKed)
absl::StatusOr<std::vector<std::string>> DecodeOptOuts(std::string_view payload);
std::string EncodeHeartbeat(MonotonicNs sent_at);
absl::StatusOr<MonotonicNs> DecodeHeartbeat(std::string_view payload);
std::string EncodeGoodbye(const Goodbye& goodbye);
absl::StatusOr<Goodbye> DecodeGoodbye(std::string_view payload);

}  // namespace tributary::intake
