# The intake protocol's messages (docs/intake-protocol.md). One root struct for each frame type that has a payload.
# Append-only: fields are added at the end with the next number, never renumbered, retyped or removed; a field that is
# not sent reads as its default. Readers enforce every limit stated here and refuse a message that passes one.
@0xc1f06b0b7a5d4e21;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("tributary::intake::wire");

# One instant read from both of the sender's clocks.
struct ClockPair {
  monotonicNs @0 :Int64;  # CLOCK_MONOTONIC of the sender's boot
  unixNs @1 :Int64;
}

# Numbers of definitions in each table of a dictionary, the reserved id 0 included: the next id.
struct Counts {
  strings @0 :UInt32 = 1;
  executables @1 :UInt32 = 1;
  frames @2 :UInt32 = 1;
  nodes @3 :UInt32 = 1;
  processes @4 :UInt32 = 1;
  threads @5 :UInt32 = 1;
}

# Type 1, collector to reducer, first on every connection. At most 64 KiB.
struct Hello {
  versionMin @0 :UInt16;
  versionMax @1 :UInt16;
  features @2 :UInt64;        # bits; none is defined yet
  role @3 :UInt16;            # 0 node, 1 cluster, 2 upload, 3 replay; unknown ones are kept
  sessionId @4 :Data;         # 16 random bytes, fixed for the life of the process
  nodeId @5 :Text;            # all texts at most 256 bytes
  bootId @6 :Text;
  hostName @7 :Text;
  kernelRelease @8 :Text;
  architecture @9 :Text;      # OpenTelemetry host.arch: amd64, arm64
  agentVersion @10 :Text;
  cpuCount @11 :UInt32;
  sampleRateHz @12 :UInt32;
  dictionaryGeneration @13 :UInt32;  # of `sent`; 0 = none was begun
  sent @14 :Counts;           # what the peer was sent of that generation
  nextSequence @15 :UInt64;   # of the oldest batch still held, or of the next to be made
  clock @16 :ClockPair;
  token @17 :Text;            # bearer token, at most 4096 bytes
}

# Type 2, reducer to collector: the answer.
struct Welcome {
  version @0 :UInt16;
  features @1 :UInt64;
  durableSequence @2 :UInt64;     # batches up to here are stored
  dictionaryKept @3 :Bool;        # the generation in Hello is known; definitions go on at `have`
  have @4 :Counts;
  creditBytes @5 :UInt32;         # frame bytes that may be unacknowledged
  dictionaryNodesMax @6 :UInt32;
  heartbeatMs @7 :UInt32;
}

# Type 3, and a part of type 4. Definitions continue at `before`. All Data fields are LEB128 columns or records as
# docs/intake-protocol.md says; each count is at most the bytes of its columns and at most what the dictionary's limits
# leave.
struct Definitions {
  generation @0 :UInt32;
  before @1 :Counts;

  stringCount @2 :UInt32;
  stringLengths @3 :Data;         # a length each, at most 4096
  stringBytes @4 :Data;

  executableCount @5 :UInt32;
  executables @6 :Data;           # records: kind, size, bytes, path

  frameCount @7 :UInt32;
  frameKinds @8 :Data;            # 2 × kind + is_caller, one byte each
  frameExecutables @9 :Data;
  frameAddresses @10 :Data;       # difference to the executable's frame before

  nodeCount @11 :UInt32;
  chainAttach @12 :Data;          # per chain: distance from its first node back to the node it grows from
  chainLengths @13 :Data;         # per chain
  nodeFrames @14 :Data;           # per node: 0 = the next frame of this message, else frame id + 1

  processCount @15 :UInt32;
  processes @16 :Data;            # records

  threadCount @17 :UInt32;
  threads @18 :Data;              # records
}

# Type 4: samples in order of time, and the definitions they need.
struct Batch {
  definitions @0 :Definitions;
  clock @1 :ClockPair;            # when the batch was closed
  captured @2 :UInt64;            # running totals of the session, at that time
  idle @3 :UInt64;
  lost @4 :List(UInt64);          # by reason, at most 64
  nodesHash @5 :UInt64;           # rolling hash over the dictionary's nodes up to this batch's last definition

  sampleCount @6 :UInt32;         # at most 100,000; every column below has as many values
  timeBase @7 :Int64;             # of the first sample, in units of 100 µs of the sender's CLOCK_MONOTONIC
  times @8 :Data;                 # difference to the sample before, in the same unit
  threads @9 :Data;
  nodes @10 :Data;                # 0 = the next chain's last node, else 1 + distance back from the newest node
  cpus @11 :Data;
  types @12 :Data;                # this and the next three: runs of (value, length)
  endings @13 :Data;
  values @14 :Data;
  counts @15 :Data;

  closes @16 :List(ClosedSession);  # at most 8
}

# An earlier session of the same node that has ended: what of its share of the captured samples is neither stored nor told
# as lost is lost for this reason.
struct ClosedSession {
  sessionId @0 :Data;             # 16 bytes
  captured @1 :UInt64;
  reason @2 :UInt8;               # a loss reason: 6 shutdown, 8 collector_killed; others read as collector_killed
}

# Type 5, reducer to collector: all batches up to this one are durable.
struct Ack {
  sequence @0 :UInt64;
}

# Type 6, reducer to collector: the reducer cannot follow this generation; everything unacknowledged is to be sent again
# under a later one.
struct NeedDictionary {
  generation @0 :UInt32;
}

struct ExecutableId {
  kind @0 :UInt8;                 # 1 GNU build-id, 2 Go build-id, 3 content hash
  bytes @1 :Data;                 # 1 to 20
}

# Type 7, reducer to collector: please upload these tables.
struct NeedSymbols {
  ids @0 :List(ExecutableId);     # at most 256
}

# Type 8, collector to reducer, on channel 1: a piece of a zstd-compressed symbol table, in order, without holes.
struct SymbolChunk {
  id @0 :ExecutableId;
  offset @1 :UInt64;              # of `bytes` in the compressed table
  totalBytes @2 :UInt64;          # of the compressed table
  rawBytes @3 :UInt64;            # of the table
  bytes @4 :Data;                 # at most 64 KiB
  unavailable @5 :Text;           # at most 256 bytes; not empty: there is no table, and why
}

# Type 9, collector to reducer, which sends it back. A reducer that has stopped reading sends its own.
struct Heartbeat {
  sentAtNs @0 :Int64;             # the sender's CLOCK_MONOTONIC
}

# Type 10: why the sender is about to close.
struct Goodbye {
  reason @0 :Text;                # for a person; at most 512 bytes
  retry @1 :Bool = true;          # false: coming back unchanged is useless
  rejectedSequence @2 :UInt64;    # not 0: this batch was malformed; sending it again is useless
}
