// Tests the path of a runtime's frames from a mapping to the wire: resolver, batcher, dictionary, codec.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "intake/codec/batch_decoder.h"
#include "intake/codec/batch_encoder.h"
#include "kernel-collector/processes/fakes_testing.h"
#include "kernel-collector/processes/runtime_testing.h"
#include "kernel-collector/uplink/batcher.h"

namespace tributary {
namespace {

class KeepingSink : public BatchSink {
 public:
  absl::Status Take(Batch batch) override {
    last = std::move(batch);
    return absl::OkStatus();
  }
  Batch last;
};

class RuntimeFrames : public testing::Test {
 protected:
  RuntimeFrames() {
    file->id = BuildId("file");
    run.mappings.Insert({.start = 0x200000, .end = 0x201000, .runtime = runtime});
  }
  // Returns the stack of one sample as the receiver of a session decodes it, root first.
  std::vector<Frame> Send(std::vector<uint64_t> user) {
    ResolvedStack stack;
    resolver.Resolve(
        {.kernel = {}, .user = user, .flags = 0, .time = MonotonicNs{1}}, run, nullptr, [](const CodeFilePtr&) {},
        &stack);
    NamedSample sample;
    sample.tid = Tid{1};
    batcher.Add(sample, run, stack, [] { return Accounting(); });
    batcher.Flush({});
    intake::IncomingBatch batch;
    for (const std::string& bytes : encoder.Encode(sink.last)) {
      intake::FrameDecoder frames;
      frames.Append(bytes);
      intake::Frame frame;
      EXPECT_TRUE(*frames.Next(&frame));
      batch = *decoder.Decode(frame.type, frame.sequence, frame.payload);
      EXPECT_TRUE(received.Append(batch.definitions));
    }
    std::vector<Frame> out;
    for (NodeRef node = batch.samples.at(0).node; node.value != 0; node = received.node(node).parent) {
      out.insert(out.begin(), received.frame(received.node(node).frame));
    }
    return out;
  }

  FakeProc proc;
  FakeExecutor executor;
  FakeClock clock;
  Metrics metrics;
  KernelCode kernel_code{{.proc_root = proc.proc(), .sys_root = proc.sys()}, executor, clock, metrics};
  StackResolver resolver{kernel_code};
  std::shared_ptr<FakeRuntime> runtime = std::make_shared<FakeRuntime>();
  CodeFilePtr file = std::make_shared<CodeFile>();
  ProcessRun run;
  KeepingSink sink;
  Batcher batcher{sink, clock, {.frames_max = 100, .strings_max = 60}};
  intake::BatchEncoder encoder{1};
  intake::BatchDecoder decoder{1};
  Dictionary received;
};

TEST_F(RuntimeFrames, ArriveWithKindCodeObjectPositionAndName) {
  runtime->codes[0x200010] = {
      {.kind = FrameKind::kGo, .address = 0x7f00c0de1234, .position = 77},
      {.kind = FrameKind::kNative, .executable = file.get(), .address = 0x1234},
      {.kind = FrameKind::kGo, .position = 42, .name = "app.handlers:Login.post"},
  };
  const std::vector<Frame> frames = Send({0x200010});
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[0], (Frame{.kind = FrameKind::kGo, .address = 0x7f00c0de1234, .position = 77}));
  EXPECT_EQ(frames[1].kind, FrameKind::kNative);
  EXPECT_EQ(received.executable(frames[1].executable).id, file->id);
  EXPECT_EQ(frames[1].address, 0x1234u);
  EXPECT_EQ(frames[2].kind, FrameKind::kGo);
  EXPECT_EQ(frames[2].position, 42u);
  EXPECT_EQ(received.string(frames[2].name), "app.handlers:Login.post");
  const uint32_t strings = received.string_count();
  EXPECT_EQ(Send({0x200010}), frames);
  EXPECT_EQ(received.string_count(), strings);  // a name is defined once
}

TEST_F(RuntimeFrames, LongNamesAreCutInWholeCharacters) {
  const std::string name(kFrameNameBytesMax - 1, 'n');
  const std::string longer = name + "\u00fc";
  runtime->codes[0x200010] = {{.kind = FrameKind::kGo, .name = longer}};
  EXPECT_EQ(received.string(Send({0x200010}).at(0).name), name);
}

TEST_F(RuntimeFrames, ADictionaryWithoutRoomForAllNamesIsReplaced) {
  // A path and a name for each frame: 20 strings, then 40 of the 60 that a dictionary may hold.
  std::deque<CodeFile> files;
  std::deque<std::string> names;
  for (size_t count : {10, 20}) {
    ResolvedStack stack;
    for (size_t i = 0; i < count; ++i) {
      CodeFile& own = files.emplace_back();
      own.id = BuildId(fmt::format("id{}", files.size()));
      own.path = fmt::format("/lib/{}", files.size());
      names.push_back(fmt::format("function {}", files.size()));
      stack.frames.push_back({.kind = FrameKind::kGo, .executable = &own, .name = names.back()});
    }
    batcher.Add({}, run, stack, [] { return Accounting(); });
  }
  EXPECT_EQ(batcher.batches(), 1u);
  const Dictionary& dictionary = batcher.dictionary();
  EXPECT_FALSE(dictionary.full());
  for (uint32_t i = 1; i < dictionary.frame_count(); ++i) EXPECT_NE(dictionary.frame(FrameRef{i}).name.value, 0u) << i;
}

}  // namespace
}  // namespace tributary
