# The intake protocol's messages (docs/intake-protocol.md). One root struct for each frame type that has a payload.
# Append-only: fields are added at the end with the next number, and never renumbered, retyped or removed. A field that
# was not sent reads as its default. Readers enforce every limit stated here and refuse a message that exceeds one.
@0xc1f06b0b7a5d4e21;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("tributary::intake::wire");

# One instant, read from both of the sender's clocks.
struct ClockPair {
  monotonicNs @0 :Int64;  # CLOCK_MONOTONIC of the sender's boot
  unixNs @1 :Int64;
}

# Numbers of definitions in each table of a dictionary, including the reserved id 0. Each is also the next id.
struct Counts {
  strings @0 :UInt32 = 1;
  executables @1 :UInt32 = 1;
  frames @2 :UInt32 = 1;
  nodes @3 :UInt32 = 1;
  processes @4 :UInt32 = 1;
  threads @5 :UInt32 = 1;
}

# Type 1, collector to reducer, first message on every connection. At most 64 KiB.
struct Hello {
  versionMin @0 :UInt16;
  versionMax @1 :UInt16;
  features @2 :UInt64;        # bits; none is defined yet
  role @3 :UInt16;            # 0 node, 1 cluster, 3 replay; 2 is reserved; reducers refuse all other values
  sessionId @4 :Data;         # 16 random bytes, fixed for the life of the process
  nodeId @5 :Text;            # all texts at most 256 bytes
  bootId @6 :Text;
  hostName @7 :Text;
  kernelRelease @8 :Text;
  architecture @9 :Text;      # OpenTelemetry host.arch: amd64, arm64
  agentVersion @10 :Text;
  cpuCount @11 :UInt32;
  sampleRateHz @12 :UInt32;
  dictionaryGeneration @13 :UInt32;  # the generation that `sent` counts; 0: none has begun
  sent @14 :Counts;           # counts of that generation that were already sent to the peer
  nextSequence @15 :UInt64;   # sequence of the oldest batch that the sender holds; if it holds none, of the next one
  clock @16 :ClockPair;
  token @17 :Text;            # bearer token, at most 4096 bytes
  predecessorId @18 :Data;    # not used: senders leave it empty, and receivers ignore it
}

# Type 2, reducer to collector: the answer.
struct Welcome {
  version @0 :UInt16;
  features @1 :UInt64;
  durableSequence @2 :UInt64;     # batches up to here are stored
  dictionaryKept @3 :Bool;        # the reducer knows the generation of Hello; definitions continue at `have`
  have @4 :Counts;
  creditBytes @5 :UInt32;         # frame bytes that may be unacknowledged
  dictionaryNodesMax @6 :UInt32;
  heartbeatMs @7 :UInt32;
}

# Type 3, and a part of type 4. `columns` contains numbered columns of LEB128 numbers, as described in
# docs/intake-protocol.md. A reader skips columns with unknown numbers.
struct Definitions {
  generation @0 :UInt32;
  derivedFrom @1 :UInt32;     # not 0: this generation begins as that one without the evicted ids; first message only
  columns @2 :Data;
  packedColumns @3 :Data;     # `columns` in packed form: a sender fills only one of the two
}

# Type 4: samples in order of time, and the definitions that they need.
struct Batch {
  definitions @0 :Definitions;
  clock @1 :ClockPair;        # when the batch was closed
  captured @2 :UInt64;        # running totals of the session, at that time
  idle @3 :UInt64;
  lost @4 :List(UInt64);      # samples by loss reason, at most 64; omitted numbers at the end are 0
  nodesHash @5 :UInt64;       # rolling hash over the dictionary's nodes up to this batch's last definition
  columns @6 :Data;           # of at most 100,000 samples; numbered columns as in Definitions
  closes @7 :List(ClosedSession);  # at most 32
  packedColumns @8 :Data;     # as in Definitions
  sampleTypes @9 :List(SampleType);  # at most 64, no number twice: types that some releases do not know
  typeCounts @10 :List(TypeCounts);  # at most 64, no number twice: the part of each type except CPU
}

# Counts of samples of one type. `number` is the type's number in this batch, as in sampleTypes.
struct TypeCounts {
  number @0 :UInt8;           # 2 to 255
  captured @1 :UInt64;
  lost @2 :List(UInt64);      # as in Batch
}

# The meaning that a sender gives a number in the column `types`.
struct SampleType {
  number @0 :UInt8;           # 3 to 255
  name @1 :Text;              # 1 to 64 bytes, as OTLP calls it
  unit @2 :Text;              # 1 to 64 bytes
  aggregation @3 :UInt8;      # 0: values add up; 1: a gauge, whose samples of one process and one time are a snapshot
}

# An earlier session of the same node that has ended. The first one of a batch accounts for its `captured`, minus the
# samples of the other ones. Those of these samples that were neither stored nor reported lost count as lost for
# `reason`.
struct ClosedSession {
  sessionId @0 :Data;             # 16 bytes
  captured @1 :UInt64;
  reason @2 :UInt8;               # 6 shutdown, 8 collector_killed; any other value reads as collector_killed
  typeCounts @3 :List(TypeCounts);  # the part of `captured` of each type except CPU; `lost` is empty
}

# Type 5, reducer to collector: all batches up to this one are durable.
struct Ack {
  sequence @0 :UInt64;
}

# Type 6, reducer to collector: the reducer cannot follow this generation. The collector must send all unacknowledged
# batches again under a later generation.
struct NeedDictionary {
  generation @0 :UInt32;
}

struct ExecutableId {
  kind @0 :UInt8;                 # 1 GNU build-id, 2 Go build-id, 3 content hash
  bytes @1 :Data;                 # 1 to 20
}

# Type 7, reducer to collector: requests the upload of these tables.
struct NeedSymbols {
  ids @0 :List(ExecutableId);     # at most 256
  parts @1 :List(SymbolPart);     # empty, or one for each of `ids`
}

# The beginning of a compressed table that the reducer already has. If the collector's table has the same totalBytes,
# rawBytes and key, the collector continues at `offset`. Otherwise, or if it does not know this struct, it begins at 0.
struct SymbolPart {
  offset @0 :UInt64;              # bytes that need not be sent; 0: none
  totalBytes @1 :UInt64;          # these three: as in the chunks of the part that the reducer has
  rawBytes @2 :UInt64;
  key @3 :UInt64;
}

# Type 8, collector to reducer, on channel 1: a piece of a zstd-compressed symbol table. Pieces come in order, without
# gaps.
struct SymbolChunk {
  id @0 :ExecutableId;
  offset @1 :UInt64;              # of `bytes` in the compressed table
  totalBytes @2 :UInt64;          # of the compressed table
  rawBytes @3 :UInt64;            # of the table
  bytes @4 :Data;                 # at most 64 KiB
  unavailable @5 :Text;           # at most 256 bytes; not empty: there is no table, for this reason
  key @6 :UInt64;                 # XXH3-64 (seed 0) of the compressed table, in every chunk; 0: not given, so never
                                  # resumed
}

# Type 9, collector to reducer. The reducer sends each heartbeat back. While the reducer does not read from the
# connection, it sends its own heartbeats.
struct Heartbeat {
  sentAtNs @0 :Int64;             # the sender's CLOCK_MONOTONIC
}

# Type 10: why the sender is about to close.
struct Goodbye {
  reason @0 :Text;                # for a person; at most 512 bytes
  retry @1 :Bool = true;          # false: the same connection attempt would fail again
  rejectedSequence @2 :UInt64;    # not 0: this batch was malformed; sending it again is useless
}

# Facts about an entity that samples belong to (docs/metadata.md). At most 64 KiB of keys and values.
struct Entity {
  kind @0 :UInt8;                 # 1 host, 2 container, 3 pod, 4 namespace, 5 Kubernetes node, 6 cluster, 7 rollout, 8
                                  # workload; a reader skips unknown kinds
  id @1 :Text;                    # in the namespace of its kind; at most 512 bytes
  fromUnixNs @2 :Int64;           # this state holds from then on; 0: since the entity began, or unknown
  gone @3 :Bool;                  # the entity ended at fromUnixNs
  attributes @4 :List(Attribute); # at most 512, ascending by key, no key twice
}

struct Attribute {
  key @0 :Text;                   # 1 to 320 bytes
  value @1 :Text;                 # at most 4096 bytes, any content
}

# Type 11, collector to reducer: the current state of entities. The first message on a connection begins a snapshot.
struct Metadata {
  entities @0 :List(Entity);      # at most 4096
  beginsSnapshot @1 :Bool;
  endsSnapshot @2 :Bool;          # entities that the sender reported earlier, but not in this snapshot, are gone
}
