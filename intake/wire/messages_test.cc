#include "intake/wire/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "intake/wire/wire.h"

namespace tributary::intake {
namespace {

using testing::HasSubstr;

ExecutableId Id(std::string_view bytes) { return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, bytes); }

Hello SomeHello() {
  Hello hello;
  hello.version_min = 1;
  hello.version_max = 3;
  hello.features = 0x8000000000000001;
  hello.role = Role::kReplay;
  for (uint8_t i = 0; i < 16; ++i) hello.session.session_id[i] = i;
  hello.session.node_id = "node";
  hello.session.boot_id = "boot";
  hello.session.host_name = "host";
  hello.session.kernel_release = "6.1.0";
  hello.session.architecture = "arm64";
  hello.session.agent_version = "0.1.0";
  hello.session.cpu_count = 64;
  hello.session.sample_rate_hz = 19;
  hello.dictionary_generation = 4;
  hello.sent = {.strings = 2, .executables = 3, .frames = 4, .nodes = 5, .processes = 6, .threads = 7};
  hello.next_sequence = 99;
  hello.clock = {MonotonicNs{-5}, UnixNs{1'700'000'000'000'000'000}};
  hello.token = "secret";
  return hello;
}

TEST(Hello, RoundTrips) {
  const Hello in = SomeHello();
  auto out = DecodeHello(EncodeHello(in));
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->version_min, 1);
  EXPECT_EQ(out->version_max, 3);
  EXPECT_EQ(out->features, in.features);
  EXPECT_EQ(out->role, Role::kReplay);
  EXPECT_EQ(out->session.session_id, in.session.session_id);
  EXPECT_EQ(out->session.node_id, "node");
  EXPECT_EQ(out->session.boot_id, "boot");
  EXPECT_EQ(out->session.host_name, "host");
  EXPECT_EQ(out->session.kernel_release, "6.1.0");
  EXPECT_EQ(out->session.architecture, "arm64");
  EXPECT_EQ(out->session.agent_version, "0.1.0");
  EXPECT_EQ(out->session.cpu_count, 64u);
  EXPECT_EQ(out->session.sample_rate_hz, 19u);
  EXPECT_EQ(out->dictionary_generation, 4u);
  EXPECT_EQ(out->sent, in.sent);
  EXPECT_EQ(out->next_sequence, 99u);
  EXPECT_EQ(out->clock.monotonic, in.clock.monotonic);
  EXPECT_EQ(out->clock.unix, in.clock.unix);
  EXPECT_EQ(out->token, "secret");
}

TEST(Hello, KeepsAnUnknownRole) {
  Hello in = SomeHello();
  in.role = static_cast<Role>(77);
  EXPECT_EQ(static_cast<int>(DecodeHello(EncodeHello(in))->role), 77);
}

TEST(Hello, CutsLongTextsAndReadersRefuseThem) {
  Hello in = SomeHello();
  in.session.host_name.assign(1000, 'h');
  EXPECT_EQ(DecodeHello(EncodeHello(in))->session.host_name, std::string(kTextBytesMax, 'h'));

  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::Hello>();
  root.setVersionMin(1);
  root.setVersionMax(1);
  root.setNextSequence(1);
  root.initSessionId(16);
  root.setNodeId("node");
  EXPECT_TRUE(DecodeHello(ToPayload(message)).ok());
  root.setHostName(std::string(kTextBytesMax + 1, 'h'));
  EXPECT_THAT(Message(DecodeHello(ToPayload(message)).status()), HasSubstr("host name: 257 bytes"));
}

TEST(Hello, RefusesNonsense) {
  struct Case {
    const char* message;
    std::function<void(wire::Hello::Builder)> spoil;
  };
  const Case cases[] = {
      {"16 bytes", [](wire::Hello::Builder root) { root.initSessionId(15); }},
      {"node id", [](wire::Hello::Builder root) { root.setNodeId(""); }},
      {"lowest protocol version", [](wire::Hello::Builder root) { root.setVersionMin(9); }},
      {"sequence numbers start", [](wire::Hello::Builder root) { root.setNextSequence(0); }},
  };
  for (const Case& c : cases) {
    capnp::MallocMessageBuilder message;
    auto root = message.initRoot<wire::Hello>();
    root.setVersionMax(1);
    root.setNextSequence(1);
    root.initSessionId(16);
    root.setNodeId("node");
    c.spoil(root);
    EXPECT_THAT(Message(DecodeHello(ToPayload(message)).status()), HasSubstr(c.message));
  }
}

TEST(Welcome, RoundTrips) {
  Welcome in;
  in.version = 1;
  in.features = 5;
  in.durable_sequence = 1234567890123;
  in.dictionary_kept = true;
  in.have = {.strings = 9, .executables = 8, .frames = 7, .nodes = 6, .processes = 5, .threads = 4};
  in.credit_bytes = 1;
  in.dictionary_nodes_max = 2;
  in.heartbeat_ms = 3;
  auto out = DecodeWelcome(EncodeWelcome(in));
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->version, 1);
  EXPECT_EQ(out->features, 5u);
  EXPECT_EQ(out->durable_sequence, in.durable_sequence);
  EXPECT_TRUE(out->dictionary_kept);
  EXPECT_EQ(out->have, in.have);
  EXPECT_EQ(out->credit_bytes, 1u);
  EXPECT_EQ(out->dictionary_nodes_max, 2u);
  EXPECT_EQ(out->heartbeat_ms, 3u);
}

TEST(Messages, SmallOnesRoundTrip) {
  EXPECT_EQ(*DecodeAck(EncodeAck(UINT64_MAX)), UINT64_MAX);
  EXPECT_EQ(*DecodeNeedDictionary(EncodeNeedDictionary(7)), 7u);
  EXPECT_EQ(*DecodeHeartbeat(EncodeHeartbeat(MonotonicNs{-1})), MonotonicNs{-1});
  auto goodbye = DecodeGoodbye(EncodeGoodbye({.reason = "why", .retry = false, .rejected_sequence = 3}));
  ASSERT_TRUE(goodbye.ok());
  EXPECT_EQ(goodbye->reason, "why");
  EXPECT_FALSE(goodbye->retry);
  EXPECT_EQ(goodbye->rejected_sequence, 3u);
}

TEST(NeedSymbols, RoundTripsAndHasALimit) {
  std::vector<SymbolRequest> requests = {{Id("a"), {}},
                                         {Id("0123456789abcdef0123"), {}},
                                         {*ExecutableId::Make(ExecutableIdKind::kContentHash, "0123456789abcdef"), {}}};
  EXPECT_EQ(*DecodeNeedSymbols(EncodeNeedSymbols(requests)), requests);
  requests[1].part = {.offset = 65'536, .total_bytes = 100'000, .raw_bytes = 900'000, .key = UINT64_MAX};
  EXPECT_EQ(*DecodeNeedSymbols(EncodeNeedSymbols(requests)), requests);

  capnp::MallocMessageBuilder message;
  auto list = message.initRoot<wire::NeedSymbols>().initIds(257);
  for (auto id : list) {
    id.setKind(1);
    id.setBytes(DataOf("x"));
  }
  EXPECT_THAT(Message(DecodeNeedSymbols(ToPayload(message)).status()), HasSubstr("257 ids"));
}

TEST(NeedSymbols, RefusesPartsThatDoNotMatchItsIds) {
  for (unsigned parts : {1u, 3u, 100'000u}) {
    capnp::MallocMessageBuilder message;
    auto root = message.initRoot<wire::NeedSymbols>();
    auto list = root.initIds(2);
    for (auto id : list) {
      id.setKind(1);
      id.setBytes(DataOf("x"));
    }
    root.initParts(parts);
    EXPECT_FALSE(DecodeNeedSymbols(ToPayload(message)).ok()) << parts;
  }
}

TEST(NeedSymbols, RefusesInvalidIds) {
  for (auto [kind, bytes] :
       {std::pair<uint8_t, const char*>{0, ""}, {1, ""}, {9, "x"}, {1, "a build-id of more than twenty bytes"}}) {
    capnp::MallocMessageBuilder message;
    auto list = message.initRoot<wire::NeedSymbols>().initIds(1);
    list[0].setKind(kind);
    list[0].setBytes(DataOf(bytes));
    EXPECT_FALSE(DecodeNeedSymbols(ToPayload(message)).ok()) << int{kind} << bytes;
  }
}

TEST(SymbolChunk, RoundTrips) {
  SymbolChunk in{.id = Id("build"), .offset = 65536, .total_bytes = 100'000, .raw_bytes = 900'000, .bytes = "data"};
  in.key = 0xfedc'ba98'7654'3210;
  auto out = DecodeSymbolChunk(EncodeSymbolChunk(in));
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->id, in.id);
  EXPECT_EQ(out->offset, in.offset);
  EXPECT_EQ(out->total_bytes, in.total_bytes);
  EXPECT_EQ(out->raw_bytes, in.raw_bytes);
  EXPECT_EQ(out->bytes, "data");
  EXPECT_EQ(out->key, in.key);
  auto none = DecodeSymbolChunk(EncodeSymbolChunk({.id = Id("build"), .unavailable = "stripped"}));
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->unavailable, "stripped");
}

TEST(SymbolChunk, RefusesBytesThatDoNotFit) {
  EXPECT_FALSE(
      DecodeSymbolChunk(EncodeSymbolChunk({.id = Id("b"), .offset = 7, .total_bytes = 10, .bytes = "four"})).ok());
  EXPECT_FALSE(
      DecodeSymbolChunk(EncodeSymbolChunk({.id = Id("b"), .offset = UINT64_MAX, .total_bytes = 10, .bytes = "x"}))
          .ok());
  EXPECT_FALSE(DecodeSymbolChunk(EncodeSymbolChunk({.id = Id("b"), .total_bytes = 10})).ok());
  EXPECT_FALSE(
      DecodeSymbolChunk(EncodeSymbolChunk({.id = Id("b"), .total_bytes = 1, .bytes = "x", .unavailable = "no"})).ok());
}

TEST(SymbolDigest, RoundTrips) {
  EXPECT_EQ(*DecodeNeedDigests(EncodeNeedDigests({Id("a"), Id("b")})), (std::vector<ExecutableId>{Id("a"), Id("b")}));
  const SymbolDigestAnswer answer{.id = Id("a"), .sha256 = {1, 2, 0xff}, .source = 6};
  EXPECT_EQ(*DecodeSymbolDigest(EncodeSymbolDigest(answer)), answer);
  const SymbolDigestAnswer none{.id = Id("a"), .unavailable = "stripped"};
  EXPECT_EQ(*DecodeSymbolDigest(EncodeSymbolDigest(none)), none);
}

TEST(SymbolDigest, RefusesWrongLengths) {
  for (const size_t size : {0, 1, 31, 33}) {
    capnp::MallocMessageBuilder message;
    auto root = message.initRoot<wire::SymbolDigest>();
    root.initId().setKind(1);
    root.getId().setBytes(DataOf("a"));
    root.setSha256(DataOf(std::string(size, 'x')));
    EXPECT_FALSE(DecodeSymbolDigest(ToPayload(message)).ok()) << size;
  }
  capnp::MallocMessageBuilder message;
  auto ids = message.initRoot<wire::NeedDigests>().initIds(kNeedSymbolsMax + 1);
  for (auto id : ids) {
    id.setKind(1);
    id.setBytes(DataOf("a"));
  }
  EXPECT_FALSE(DecodeNeedDigests(ToPayload(message)).ok());
}

TEST(OptOuts, RoundTrips) {
  const std::vector<std::string> containers = {std::string(64, 'c'), "x", std::string(kOptOutIdBytesMax, 'y')};
  EXPECT_EQ(*DecodeOptOuts(EncodeOptOuts(containers)), containers);
  EXPECT_TRUE(DecodeOptOuts(EncodeOptOuts({}))->empty());
  EXPECT_EQ(DecodeOptOuts(EncodeOptOuts(std::vector<std::string>(kOptOutsMax, "c")))->size(), kOptOutsMax);
}

TEST(OptOuts, RefusesTooManyAndInvalidIds) {
  const auto decode = [](unsigned count, const std::string& id) {
    capnp::MallocMessageBuilder message;
    auto list = message.initRoot<wire::OptOuts>().initContainers(count);
    for (unsigned i = 0; i < count; ++i) list.set(i, capnp::Text::Reader(id.c_str(), id.size()));
    return DecodeOptOuts(ToPayload(message)).status();
  };
  EXPECT_TRUE(decode(1, "c").ok());
  EXPECT_FALSE(decode(kOptOutsMax + 1, "c").ok());
  EXPECT_FALSE(decode(1, "").ok());
  EXPECT_FALSE(decode(1, std::string(kOptOutIdBytesMax + 1, 'c')).ok());
}

// Whatever a byte of a message is changed to, a decoder must return, and must not throw, read past the end or run long.
TEST(Messages, SurviveEveryChangedByte) {
  const std::string messages[] = {EncodeHello(SomeHello()),
                                  EncodeWelcome({}),
                                  EncodeNeedSymbols({{Id("a"), {}}, {Id("b"), {1, 2, 3, 4}}}),
                                  EncodeSymbolChunk({.id = Id("b"), .total_bytes = 4, .bytes = "four"}),
                                  EncodeGoodbye({.reason = "why"}),
                                  EncodeNeedDigests({Id("a")}),
                                  EncodeSymbolDigest({.id = Id("a"), .sha256 = {1}, .source = 2}),
                                  EncodeOptOuts({"one", "two"})};
  for (const std::string& message : messages) {
    for (size_t at = 0; at < message.size(); ++at) {
      for (int flip : {0x01, 0x80, 0xff}) {
        std::string changed = message;
        changed[at] = static_cast<char>(changed[at] ^ flip);
        (void)DecodeHello(changed);
        (void)DecodeWelcome(changed);
        (void)DecodeNeedSymbols(changed);
        (void)DecodeSymbolChunk(changed);
        (void)DecodeGoodbye(changed);
        (void)DecodeNeedDigests(changed);
        (void)DecodeSymbolDigest(changed);
        (void)DecodeOptOuts(changed);
        (void)DecodeHello(std::string_view(changed).substr(0, at / 8 * 8));
      }
    }
  }
}

TEST(Messages, RefuseEmptyAndRaggedPayloads) {
  EXPECT_FALSE(DecodeAck("").ok());
  EXPECT_FALSE(DecodeAck("1234567").ok());
  EXPECT_FALSE(DecodeAck(EncodeAck(1).substr(0, 8)).ok());
}

TEST(Messages, ReadFromAnyAlignment) {
  const std::string shifted = "x" + EncodeAck(42);
  EXPECT_EQ(*DecodeAck(std::string_view(shifted).substr(1)), 42u);
}

// A list of empty structs takes no bytes, so its length alone must not cause iterations.
TEST(Messages, RefuseABombOfEmptyStructs) {
  capnp::MallocMessageBuilder message;
  message.initRoot<wire::NeedSymbols>().initIds(1);
  std::string payload = ToPayload(message);
  // Root pointer, one pointer field, then the list's tag word: claim 2^29 − 1 elements of no size.
  const uint64_t list_pointer = 1 | uint64_t{7} << 32;              // offset 0, inline composite, 0 words
  const uint64_t tag = (uint64_t{(1u << 29) - 1} << 2);             // element count, struct of size 0
  payload.resize(8);                                                // keep the segment table
  const uint64_t words[] = {uint64_t{1} << 48, list_pointer, tag};  // root: struct with one pointer
  payload.append(reinterpret_cast<const char*>(words), sizeof(words));
  payload[4] = 3;
  EXPECT_FALSE(DecodeNeedSymbols(payload).ok());
}

}  // namespace
}  // namespace tributary::intake
