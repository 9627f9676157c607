# The messages of the intake protocol (docs/intake-protocol.md). Each frame type has a root struct here. The schema is
# append-only: add fields at the end with the next number, and never change the number or type of a field or remove it.
# If a field was not sent, readers see its default value. Readers refuse a message that exceeds a limit stated here.
@0xc1f06b0b7a5d4e21;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("tributary::intake::wire");

# Two clocks of the sender, read at the same time.
struct ClockPair {
  monotonicNs @0 :Int64;  # CLOCK_MONOTONIC of the sender's boot
  unixNs @1 :Int64;
}

# The number of definitions in each table of a dictionary, including the reserved id 0. This number is also the next id
# of the table.
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
  features @2 :UInt64;        # bit 0: the sender answers NeedDigests; bit 1: it reads OptOuts; readers ignore all
                              # other bits
  role @3 :UInt16;            # 0 node, 1 cluster, 3 replay; 2 is reserved; reducers refuse all other values
  sessionId @4 :Data;         # 16 random bytes; a kernel-collector sets the last byte to the index of the reducer
  nodeId @5 :Text;            # all texts at most 256 bytes
  bootId @6 :Text;
  hostName @7 :Text;
  kernelRelease @8 :Text;
  architecture @9 :Text;      # OpenTelemetry host.arch: amd64, arm64
  agentVersion @10 :Text;
  cpuCount @11 :UInt32;
  sampleRateHz @12 :UInt32;
  dictionaryGeneration @13 :UInt32;  # the generation of the definitions in `sent`; 0: no generation has begun
  sent @14 :Counts;           # counts of this generation's definitions that were already sent
  nextSequence @15 :UInt64;   # number of the oldest batch that the sender still holds; if none, of its next batch
  clock @16 :ClockPair;
  token @17 :Text;            # bearer token, at most 4096 bytes
  predecessorId @18 :Data;    # not used: senders leave it empty, and readers ignore it
}

# Type 2, reducer to collector: the answer to Hello.
struct Welcome {
  version @0 :UInt16;
  features @1 :UInt64;            # bit 0: the reducer stores process events; bit 1: it knows interpreters
  durableSequence @2 :UInt64;     # all batches up to this number are stored
  dictionaryKept @3 :Bool;        # the reducer holds the generation of Hello; definitions continue at `have`
  have @4 :Counts;
  creditBytes @5 :UInt32;         # while this many bytes of frames are unacknowledged, the collector sends no batch
  dictionaryNodesMax @6 :UInt32;
  heartbeatMs @7 :UInt32;
}

# Type 3, and a part of type 4. `columns` contains numbered columns, as described in docs/intake-protocol.md. A reader
# skips columns with unknown numbers.
struct Definitions {
  generation @0 :UInt32;
  derivedFrom @1 :UInt32;     # in the first message of a generation that keeps definitions of an earlier generation
                              # (an eviction): the number of the earlier generation; in all other messages: 0
  columns @2 :Data;
  packedColumns @3 :Data;     # `columns` in packed form: a sender fills only one of the two
}

# Type 4: samples and process events, each in order of time, and the definitions that they need.
struct Batch {
  definitions @0 :Definitions;
  clock @1 :ClockPair;        # when the batch was closed
  captured @2 :UInt64;        # captured, idle, lost: the session's totals when the batch was closed
  idle @3 :UInt64;
  lost @4 :List(UInt64);      # one number per loss reason, at most 64; missing numbers at the end are 0
  nodesHash @5 :UInt64;       # rolling hash over the dictionary's nodes, including those of this batch
  columns @6 :Data;           # at most 100,000 samples, as numbered columns like those of Definitions
  closes @7 :List(ClosedSession);  # at most 32
  packedColumns @8 :Data;     # as in Definitions
  sampleTypes @9 :List(SampleType);  # defines the batch's types other than cpu and off_cpu; at most 64, no number twice
  typeCounts @10 :List(TypeCounts);  # captured and lost by type, without CPU: at most 64 sample types, and process
                              # events; no number twice
  families @11 :List(Family); # at most 8, no number twice
}

# The records of a batch that are not samples. Readers skip families with unknown numbers. A sender sends a family only
# if Welcome has the family's bit.
struct Family {
  number @0 :UInt8;           # 1 process events: at most 20,000, Welcome's feature bit 0; 0 is not used
  columns @1 :Data;           # numbered columns, like those of Definitions
  packedColumns @2 :Data;     # as in Definitions
}

# Numbers of records of one type. `number` is the number of the sample type in this batch, as in sampleTypes. The
# numbers of process events are not part of the totals `captured` and `lost`.
struct TypeCounts {
  number @0 :UInt8;           # 2 to 255; 0 process events: only if Welcome has feature bit 0
  captured @1 :UInt64;
  lost @2 :List(UInt64);      # by loss reason, as in Batch
}

# Defines a number of the column `types`.
struct SampleType {
  number @0 :UInt8;           # 3 to 255
  name @1 :Text;              # 1 to 64 bytes, as in OTLP
  unit @2 :Text;              # 1 to 64 bytes
  aggregation @3 :UInt8;      # 0: values add up; 1: a gauge: samples of one process with the same time form a snapshot
}

# An earlier session of the same node that has ended. `captured` is the number of captured samples that belong to the
# session. An exception is the first closed session of a batch: its `captured` includes the samples of the batch's other
# closed sessions, and the reducer subtracts those samples. Samples of the session that were neither stored nor reported
# lost count as lost for `reason`.
struct ClosedSession {
  sessionId @0 :Data;             # 16 bytes
  captured @1 :UInt64;
  reason @2 :UInt8;               # 6 shutdown, 8 collector_killed; any other value reads as collector_killed
  typeCounts @3 :List(TypeCounts);  # `captured` by type, without CPU; `lost` is empty
}

# Type 5, reducer to collector: all batches up to this one are durable.
struct Ack {
  sequence @0 :UInt64;
}

# Type 6, reducer to collector: the reducer cannot use this generation. The collector must send all unacknowledged
# batches again, under a generation with a higher number.
struct NeedDictionary {
  generation @0 :UInt32;
}

struct ExecutableId {
  kind @0 :UInt8;                 # 1 GNU build-id, 2 Go build-id, 3 content hash
  bytes @1 :Data;                 # 1 to 20
}

# Type 7, reducer to collector: requests the symbol tables of these executables.
struct NeedSymbols {
  ids @0 :List(ExecutableId);     # at most 256
  parts @1 :List(SymbolPart);     # empty, or one for each of `ids`
}

# Describes the beginning of a compressed table that the reducer already has. If the collector's table has the same
# totalBytes, rawBytes and key, the collector continues at `offset`. If one of them differs, or if the collector's
# release does not know this struct, the collector sends the table from the beginning.
struct SymbolPart {
  offset @0 :UInt64;              # number of bytes that need not be sent; 0: none
  totalBytes @1 :UInt64;          # totalBytes, rawBytes, key: as in the chunks that the reducer has
  rawBytes @2 :UInt64;
  key @3 :UInt64;
}

# Type 8, collector to reducer, on channel 1: a piece of a symbol table that is compressed with zstd. The pieces of a
# table are sent in order, without gaps.
struct SymbolChunk {
  id @0 :ExecutableId;
  offset @1 :UInt64;              # position of `bytes` in the compressed table
  totalBytes @2 :UInt64;          # size of the compressed table
  rawBytes @3 :UInt64;            # size of the table before compression
  bytes @4 :Data;                 # at most 64 KiB
  unavailable @5 :Text;           # at most 256 bytes; not empty: there is no table, and this is the reason
  key @6 :UInt64;                 # XXH3-64 (seed 0) of the compressed table, the same in all its chunks; 0: no key, so
                                  # an interrupted upload cannot be continued
}

# Type 9, collector to reducer. The reducer sends each heartbeat back. While the reducer does not read from the
# connection, the reducer sends its own heartbeats.
struct Heartbeat {
  sentAtNs @0 :Int64;             # the sender's CLOCK_MONOTONIC
}

# Type 10: why the sender is about to close the connection.
struct Goodbye {
  reason @0 :Text;                # text for people; at most 512 bytes
  retry @1 :Bool = true;          # false: the next attempt will fail, too, unless a person changes something
  rejectedSequence @2 :UInt64;    # not 0: the reducer will never accept this batch, because it is malformed
}

# The state of an entity that samples belong to, such as a host or a pod (docs/metadata.md). At most 64 KiB of keys and
# values.
struct Entity {
  kind @0 :UInt8;                 # 1 host, 2 container, 3 pod, 4 namespace, 5 Kubernetes node, 6 cluster, 7 rollout, 8
                                  # workload; a reader skips unknown kinds
  id @1 :Text;                    # unique among entities of this kind; at most 512 bytes
  fromUnixNs @2 :Int64;           # when this state begins; 0: when the entity began, or at an unknown time
  gone @3 :Bool;                  # the entity ended at fromUnixNs
  attributes @4 :List(Attribute); # at most 512, in ascending order of keys, no key twice
}

struct Attribute {
  key @0 :Text;                   # 1 to 320 bytes
  value @1 :Text;                 # at most 4096 bytes; any bytes
}

# Type 11, collector to reducer: states of entities. The first such message on a connection begins a snapshot, which is
# one message or several.
struct Metadata {
  entities @0 :List(Entity);      # at most 4096
  beginsSnapshot @1 :Bool;
  endsSnapshot @2 :Bool;          # entities that the sender reported earlier and that are not in this snapshot are gone
}

# Type 12, reducer to collector: requests the digests of the collector's symbol tables of these executables. Sent only
# if Hello has feature bit 0.
struct NeedDigests {
  ids @0 :List(ExecutableId);     # at most 256
}

# Type 13, collector to reducer: the answer to one id of NeedDigests.
struct SymbolDigest {
  id @0 :ExecutableId;
  sha256 @1 :Data;                # 32 bytes: the SHA-256 of the encoded table, before compression
  source @2 :UInt8;               # of the table's names, as in the encoded table
  unavailable @3 :Text;           # at most 256 bytes; not empty: there is no table, and this is the reason
}

# Type 14, reducer to collector: the containers of this node that the reducer wants no samples and no process events of,
# because their pod or namespace opted out (docs/opt-out.md). Each message replaces the earlier one of this reducer. Sent
# after Welcome and after each change, only if Hello has feature bit 1.
struct OptOuts {
  containers @0 :List(Text);      # container ids, at most 4096, each 1 to 512 bytes
}
