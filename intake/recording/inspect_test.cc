#include "intake/recording/inspect.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include "base/golden_file_testing.h"
#include "base/status.h"
#include "intake/codec/batch_encoder.h"
#include "intake/recording/recording_reader.h"
#include "intake/testing/batch_generator_testing.h"

namespace tributary::intake {
namespace {

struct Printed {
  std::vector<std::string> lines;
  absl::Status status;
};

Printed Print(std::string_view bytes) {
  Fd file(memfd_create("recording", MFD_CLOEXEC));
  EXPECT_EQ(pwrite(file.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  RecordingReader reader("file", std::move(file));
  Printed out;
  out.status = Inspect(reader, [&](std::string_view line) {
    out.lines.emplace_back(line);
    return absl::OkStatus();
  });
  return out;
}

bool Has(const std::string& line, std::string_view part) { return line.find(part) != std::string::npos; }

std::string HelloFrame() {
  Hello hello;
  hello.session.node_id = "evil\x1b[2J\nnode";
  hello.token = "secret";
  return EncodeFrame(MessageType::kHello, 0, 0, EncodeHello(hello));
}

std::string Recording(int batches) {
  BatchGenerator generator(3);
  BatchEncoder encoder(1);
  std::string bytes = HelloFrame();
  for (int i = 0; i < batches; ++i) {
    for (const std::string& frame : encoder.Encode(generator.Next(50))) bytes += frame;
  }
  return bytes;
}

TEST(Inspect, PrintsEveryMessageAndASummary) {
  const std::string bytes = Recording(2);
  const Printed printed = Print(bytes);
  EXPECT_TRUE(printed.status.ok()) << printed.status;
  ASSERT_EQ(printed.lines.size(), 4u);
  EXPECT_TRUE(Has(printed.lines[0], R"("type":"hello")"));
  EXPECT_TRUE(Has(printed.lines[1], R"("type":"batch","type_number":4,"channel":0,"sequence":1,)"));
  EXPECT_TRUE(Has(printed.lines[1], R"("path":"/usr/bin/program1")"));
  EXPECT_TRUE(Has(printed.lines[1], R"("definitions.nodeFrames":)"));
  EXPECT_TRUE(Has(printed.lines[2], R"("leaf_executable":"/usr/bin/program)"));
  EXPECT_TRUE(Has(printed.lines[3], R"({"type":"summary","bytes":)" + std::to_string(bytes.size())));
  EXPECT_TRUE(Has(printed.lines[3], R"("sample_rows":100,"samples":100,)"));
  EXPECT_TRUE(Has(printed.lines[3], R"("captured":100,"lost":0})"));
}

TEST(Inspect, PrintsProcessEvents) {
  BatchGenerator generator(3);
  const Batch batch = generator.Next(5, 30);
  const Printed printed = Print(HelloFrame() + BatchEncoder(1).Encode(batch).back());
  EXPECT_TRUE(printed.status.ok()) << printed.status;
  ASSERT_EQ(printed.lines.size(), 3u);
  const std::string& line = printed.lines[1];
  EXPECT_TRUE(Has(line, R"("events.times":)"));
  EXPECT_TRUE(Has(line, R"("events":[{"time_ns":)"));
  EXPECT_TRUE(Has(line, R"("kind":"sum","pid":0,)"));
  EXPECT_TRUE(Has(line, R"("executable_path":"/usr/bin/tool)"));
  EXPECT_TRUE(Has(line, R"("exit_code":)"));
  const std::string events = std::to_string(batch.accounting.captured.events());
  EXPECT_TRUE(Has(line, R"("captured_events":)" + events + R"(,"lost_events":0,)"));
  const std::string& summary = printed.lines[2];
  EXPECT_TRUE(Has(summary, R"("event_rows":30,"events_by_kind":{)"));
  EXPECT_TRUE(Has(summary, R"("captured_events":)" + events + R"(,"lost_events":0})"));
  EXPECT_FALSE(Has(Print(Recording(1)).lines.back(), "event")) << "a recording without events looks as before";
}

TEST(Inspect, ReportsDepthsAfterAnEviction) {
  BatchGenerator generator(3);
  BatchEncoder encoder(1);
  std::string bytes = HelloFrame();
  std::string expected;
  for (int i = 0; i < 3; ++i) {
    if (i != 0) {
      generator.Evict();
      encoder = BatchEncoder::Following(encoder.generation() + 1, &encoder, *generator.dictionary());
    }
    const Batch batch = generator.Next(50);
    for (const std::string& frame : encoder.Encode(batch)) bytes += frame;
    expected.clear();
    for (const Sample& sample : batch.samples) {
      int depth = 0;
      for (NodeRef at = sample.node; at.value != 0; at = batch.dictionary->node(at).parent) ++depth;
      expected += std::to_string(depth) + " ";
    }
  }
  const Printed printed = Print(bytes);
  ASSERT_TRUE(printed.status.ok()) << printed.status;
  const std::string& last = printed.lines[printed.lines.size() - 2];
  constexpr std::string_view kKey = "\"depth\":";
  std::string depths;
  for (size_t at = 0; (at = last.find(kKey, at)) != last.npos;) {
    at += kKey.size();
    depths += last.substr(at, last.find_first_not_of("0123456789", at) - at) + " ";
  }
  EXPECT_EQ(depths, expected);
}

TEST(Inspect, EscapesForeignText) {
  const Printed printed = Print(HelloFrame());
  ASSERT_EQ(printed.lines.size(), 2u);
  EXPECT_TRUE(Has(printed.lines[0], R"("node_id":"evil\\x1b[2J\\x0anode")"));
  EXPECT_FALSE(Has(printed.lines[0], "secret"));
}

TEST(Inspect, ReportsWhereDamageBegins) {
  const std::string whole = Recording(2), first = Recording(1);
  std::string bytes = whole;
  bytes[first.size() + kHeaderBytes + 5] ^= 1;
  const Printed printed = Print(bytes);
  ASSERT_EQ(printed.lines.size(), 3u);  // Hello, one batch, the summary
  EXPECT_TRUE(Has(printed.lines[2], R"("sample_rows":50)"));
  EXPECT_TRUE(Has(Message(printed.status), "file: offset " + std::to_string(first.size()) + ": ")) << printed.status;

  EXPECT_TRUE(Has(Message(printed.status), "truncate -s " + std::to_string(first.size()) + ",")) << printed.status;

  const Printed torn = Print(whole.substr(0, whole.size() - 1));
  EXPECT_EQ(torn.lines.size(), 3u);
  EXPECT_EQ(torn.status.code(), absl::StatusCode::kDataLoss);
}

TEST(Inspect, RefusesARecordingOfANewerRelease) {
  std::string frame = Recording(1);
  frame[4] = 2;  // the version of the frame
  Hello hello;
  hello.session.node_id = "node";
  hello.version_min = hello.version_max = 2;
  for (const std::string& bytes : {frame, EncodeFrame(MessageType::kHello, 0, 0, EncodeHello(hello))}) {
    const Printed printed = Print(bytes);
    EXPECT_TRUE(absl::IsFailedPrecondition(printed.status)) << printed.status;
    EXPECT_EQ(Message(printed.status),
              "file was written by a newer release: read it with the tributary command of that release");
  }
  frame[0] = 'X';
  EXPECT_TRUE(Has(Message(Print(frame).status), "file is not a recording, or its first message is damaged"));
}

TEST(Inspect, ReportsWhichMessageIsInconsistent) {
  const std::string whole = Recording(2), first = Recording(1);
  // The second batch without the first: its definitions continue definitions that are not there.
  const Printed printed = Print(HelloFrame() + whole.substr(first.size()));
  ASSERT_EQ(printed.lines.size(), 3u);
  EXPECT_TRUE(Has(printed.lines[1], R"("error":)"));
  EXPECT_TRUE(Has(Message(printed.status), "offset " + std::to_string(HelloFrame().size())));
}

TEST(Inspect, EndsWhenTheWriterFails) {
  Fd file(memfd_create("recording", MFD_CLOEXEC));
  const std::string bytes = Recording(2);
  ASSERT_EQ(pwrite(file.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  RecordingReader reader("file", std::move(file));
  int lines = 0;
  EXPECT_FALSE(Inspect(reader, [&](std::string_view) {
                 ++lines;
                 return absl::UnavailableError("closed");
               }).ok());
  EXPECT_EQ(lines, 1);
}

// The fuzz target's corpus: small recordings, whole, torn and out of order.
TEST(Inspect, CorpusIsUpToDate) {
  const std::filesystem::path folder = std::filesystem::path(TRIBUTARY_SOURCE_DIR) / "test/fuzz/corpus/recording_fuzz";
  // Uncompressed, because a fuzzer cannot guess compressed bytes.
  auto plain = [](const std::string& stored) {
    FrameDecoder decoder;
    decoder.Append(stored);
    std::string out;
    Frame frame;
    for (size_t at = 0; *decoder.Next(&frame);) {
      std::string header = stored.substr(at, kHeaderBytes);
      at = stored.size() - decoder.buffered_bytes();
      header[6] = 0;
      header.replace(20, 4, header.substr(16, 4));
      out += header + frame.payload;
    }
    return out;
  };
  BatchGenerator generator(3);
  BatchEncoder encoder(1);
  std::string small = HelloFrame();
  for (int i = 0; i < 3; ++i) small += encoder.Encode(generator.Next(4)).back();
  BatchEncoder events(2);
  generator.NewDictionary();
  ExpectFile(folder / "process_events", plain(HelloFrame() + events.Encode(generator.Next(2, 10)).back()));
  ExpectFile(folder / "small", plain(small));
  ExpectFile(folder / "stored", small);
  ExpectFile(folder / "torn", plain(small).substr(0, 700));
  ExpectFile(folder / "hello", plain(HelloFrame()));
}

}  // namespace
}  // namespace tributary::intake
