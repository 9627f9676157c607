#include "kernel-collector/processes/process_context.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "kernel-collector/processes/fakes_testing.h"

namespace tributary {
namespace {

using std::string_literals::operator""s;

// Protobuf by hand: a field of bytes, shorter than 128 or up to 16 KiB.
std::string Bytes(int number, const std::string& bytes) {
  std::string out(1, static_cast<char>((number << 3) | 2));
  if (bytes.size() >= 128) out += static_cast<char>((bytes.size() & 0x7f) | 0x80);
  out += static_cast<char>(bytes.size() < 128 ? bytes.size() : bytes.size() >> 7);
  return out + bytes;
}
std::string Attribute(const std::string& key, const std::string& any_value) {
  return Bytes(1, key) + Bytes(2, any_value);
}
std::string Text(const std::string& key, const std::string& text) { return Attribute(key, Bytes(1, text)); }
std::string Resource(const std::string& key_value) { return Bytes(1, Bytes(1, key_value)); }

std::string Decoded(const std::string& message) {
  auto context = DecodeProcessContext(message);
  return context.ok() ? EncodeAttributes(context->attributes, 4096, nullptr) : "none";
}

TEST(ProcessContext, TakesAttributesInsideAndOutsideTheResource) {
  EXPECT_EQ(Decoded(Resource(Text("service.name", "shop")) + Bytes(2, Text("runtime", "x"))),
            "runtime=x,service.name=shop");
  EXPECT_EQ(Decoded(""), "");
}

TEST(ProcessContext, TakesNumbersAndBooleansAsText) {
  EXPECT_EQ(Decoded(Resource(Attribute("a", "\x10\x01"s))), "a=true");
  EXPECT_EQ(Decoded(Resource(Attribute("a", "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s))), "a=-1");
  EXPECT_EQ(Decoded(Resource(Attribute("a", "\x21\0\0\0\0\0\0\xf8\x3f"s))), "a=1.5");
}

TEST(ProcessContext, DropsAttributesWithoutText) {
  auto context = DecodeProcessContext(Bytes(1, Bytes(1, Attribute("list", Bytes(5, ""))) + Bytes(1, Text("", "x")) +
                                                   Bytes(1, Bytes(1, "no value")) + Bytes(1, Text("a", "b"))));
  ASSERT_TRUE(context.ok());
  EXPECT_EQ(context->dropped, 3u);
  EXPECT_EQ(context->attributes.size(), 1u);
}

TEST(ProcessContext, SkipsUnknownFields) {
  EXPECT_EQ(Decoded("\x28\x07"s + Resource(Text("a", "b")) + "\x35\1\2\3\4"s + Bytes(9, "x")), "a=b");
}

TEST(ProcessContext, RefusesMalformedMessages) {
  const std::string good = Resource(Text("service.name", "shop"));
  for (size_t size = 1; size < good.size(); ++size) EXPECT_EQ(Decoded(good.substr(0, size)), "none") << size;
  EXPECT_EQ(Decoded("\x0a"s + std::string(11, '\xff')), "none");  // a length without an end
  EXPECT_EQ(Decoded("\x0b"s), "none");                            // groups are obsolete
  EXPECT_EQ(Decoded("\0\0"s), "none");
}

TEST(ProcessContext, IsBounded) {
  std::string attributes;
  for (int i = 0; i < 600; ++i) attributes += Bytes(1, Text(fmt::format("k{}", i), ""));
  auto context = DecodeProcessContext(Bytes(1, attributes));
  ASSERT_TRUE(context.ok()) << context.status();
  EXPECT_EQ(context->attributes.size(), kProcessContextAttributesMax);
  EXPECT_EQ(context->dropped, 600 - kProcessContextAttributesMax);
}

TEST(ProcessContext, IsFoundByItsName) {
  const std::string before = "55000-56000 r-xp 00000000 fe:00 1   /bin/OTEL_CTX\n";
  EXPECT_EQ(FindProcessContext(before + "7000-8000 rw-p 00000000 00:01 9   /memfd:OTEL_CTX (deleted)\n"), 0x7000u);
  EXPECT_EQ(FindProcessContext(before + "7000-8000 rw-p 00000000 00:00 0   [anon:OTEL_CTX]\n"), 0x7000u);
  EXPECT_EQ(FindProcessContext(before + "7000-8000 rw-p 00000000 00:00 0   [anon_shmem:OTEL_CTX]"), 0x7000u);
  EXPECT_EQ(FindProcessContext(before + "7000-8000 rw-p 00000000 00:00 0   [anon:OTEL_CTX2]\n"), std::nullopt);
  EXPECT_EQ(FindProcessContext("OTEL_CTX\n7-8 OTEL_CTX\n"), std::nullopt);
  EXPECT_EQ(FindProcessContext(""), std::nullopt);
}

// The format in which an SDK publishes it.
struct Published {
  char signature[8];
  uint32_t version, payload_size;
  uint64_t published_at_ns, payload;
};

class ReadContext : public testing::Test {
 protected:
  void Publish(Published header, const std::string& text) {
    proc.AddProcess(5, {.maps = "1000-2000 rw-p 00000000 00:01 9   /memfd:OTEL_CTX (deleted)\n"});
    std::string memory(0x2000, '\0');
    std::memcpy(memory.data() + 0x1000, &header, sizeof header);
    std::memcpy(memory.data() + 0x1800, text.data(), text.size());
    FakeProc::Write(proc.proc() + "/5/mem", memory);
  }
  absl::StatusCode Code() { return ReadProcessContext(proc.proc(), Pid{5}).status().code(); }

  const std::string message = Resource(Text("service.name", "shop"));
  const Published good{{'O', 'T', 'E', 'L', '_', 'C', 'T', 'X'}, 2, static_cast<uint32_t>(message.size()), 7, 0x1800};
  FakeProc proc;
};

TEST_F(ReadContext, OfAProcess) {
  Publish(good, message);
  auto context = ReadProcessContext(proc.proc(), Pid{5});
  ASSERT_TRUE(context.ok()) << context.status();
  EXPECT_EQ(FindAttribute(context->attributes, "service.name"), "shop");
}

TEST_F(ReadContext, ReportsWhyThereIsNone) {
  EXPECT_EQ(Code(), absl::StatusCode::kNotFound);  // no process
  proc.AddProcess(5, {.maps = "1000-2000 rw-p 00000000 00:00 0 \n"});
  EXPECT_EQ(Code(), absl::StatusCode::kNotFound);
  Published header = good;
  header.signature[0] = 0;
  Publish(header, message);
  EXPECT_EQ(Code(), absl::StatusCode::kInvalidArgument);
  header = good;
  header.version = 3;
  Publish(header, message);
  EXPECT_EQ(Code(), absl::StatusCode::kInvalidArgument);
  header = good;
  header.published_at_ns = 0;
  Publish(header, message);
  EXPECT_EQ(Code(), absl::StatusCode::kUnavailable);
  for (uint64_t address : {uint64_t{0x1fff}, uint64_t{0x3000}, ~uint64_t{0}, uint64_t{1} << 63}) {
    header = good;
    header.payload = address;
    Publish(header, message);
    EXPECT_EQ(Code(), absl::StatusCode::kInvalidArgument) << address;
  }
  header = good;
  header.payload_size = UINT32_MAX;
  Publish(header, message);
  EXPECT_EQ(Code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ReadContext, OfThisProcessWhileItChanges) {
  const int file = memfd_create("OTEL_CTX", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, 4096), 0);
  auto* header = static_cast<Published*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0));
  close(file);
  ASSERT_NE(header, MAP_FAILED);
  const std::string messages[2] = {message, Resource(Text("service.name", "shop, renamed"))};
  auto publish = [&](int which, uint64_t time) {
    std::atomic_ref<uint64_t> published(header->published_at_ns);
    published.store(0);
    header->payload = reinterpret_cast<uint64_t>(messages[which].data());
    header->payload_size = static_cast<uint32_t>(messages[which].size());
    published.store(time);
  };
  publish(0, 1);
  header->version = 2;
  std::memcpy(header->signature, "OTEL_CTX", 8);

  std::atomic<bool> stop = false;
  std::thread publisher([&] {
    for (uint64_t time = 2; !stop; ++time) publish(static_cast<int>(time % 2), time);
  });
  for (int i = 0; i < 200; ++i) {
    auto context = ReadProcessContext("/proc", Pid{getpid()});
    if (!context.ok()) {
      EXPECT_EQ(context.status().code(), absl::StatusCode::kUnavailable) << context.status();
      continue;
    }
    const std::string_view name = FindAttribute(context->attributes, "service.name");
    EXPECT_TRUE(name == "shop" || name == "shop, renamed") << name;
  }
  stop = true;
  publisher.join();
  EXPECT_TRUE(ReadProcessContext("/proc", Pid{getpid()}).ok());
  munmap(header, 4096);
}

}  // namespace
}  // namespace tributary
