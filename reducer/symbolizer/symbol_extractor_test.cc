#include "reducer/symbolizer/symbol_extractor.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>

#include "reducer/symbolizer/extractor_testing.h"
#include "symbols/symbol_codec.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

SymbolExtractor::Spawn ForkAnd(std::function<void(int output)> work) {
  return [work](const SymbolExtractor::Files&, int output, const ExtractorRequest&) -> absl::StatusOr<ChildProcess> {
    const pid_t pid = fork();
    if (pid != 0) return ChildProcess(pid);
    work(output);
    _exit(0);
  };
}

Fd OpenSelf() { return Fd(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)); }

Fd InMemory(std::string_view bytes) {
  Fd fd(memfd_create("file", MFD_CLOEXEC));
  EXPECT_EQ(write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  return fd;
}

class SymbolExtractorTest : public ::testing::Test {
 protected:
  absl::StatusOr<SymbolExtractor::Extracted> Extract(const Fd& file, SymbolExtractor::Options options = {},
                                                     SymbolExtractor::Spawn spawn = ForkExtractor,
                                                     ExecutableId claimed = {}) {
    SymbolExtractor extractor(options, std::move(spawn), metrics_);
    return extractor.Extract({.file = file.get()}, claimed);
  }
  uint64_t Deaths() { return metrics_.AddCounter("tributary_symbolizer_extractor_deaths_total", "").value(); }

  Metrics metrics_;
};

TEST_F(SymbolExtractorTest, MakesATableOfThisProgram) {
  const Fd self = OpenSelf();
  const auto extracted = Extract(self);
  ASSERT_TRUE(extracted.ok()) << extracted.status();
  const auto table = DecodeSymbolTable(extracted->encoded);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ((*table)->id(), extracted->id);
  EXPECT_EQ((*table)->source(), SymbolSource::kDwarf);
  EXPECT_GT((*table)->function_count(), 100u);
}

// Its id is a hash, which the sandboxed process must be able to compute.
TEST_F(SymbolExtractorTest, MakesATableOfAFileWithoutABuildId) {
  std::ifstream file("/bin/true", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const size_t note = bytes.find(std::string_view("\x14\0\0\0\3\0\0\0GNU", 11));  // its size, its type and its owner
  ASSERT_NE(note, bytes.npos);
  bytes[note + 4] = '\x77';  // a type that nothing knows
  const auto extracted = Extract(InMemory(bytes));
  ASSERT_TRUE(extracted.ok()) << extracted.status();
  EXPECT_EQ(extracted->id.kind(), ExecutableIdKind::kContentHash);
}

TEST_F(SymbolExtractorTest, ReportsWhyThereIsNoTable) {
  const auto rubbish =
      Extract(InMemory("\x7f"
                       "ELF and then nothing of the kind"));
  EXPECT_EQ(rubbish.status().code(), absl::StatusCode::kInvalidArgument) << rubbish.status();
  EXPECT_THAT(std::string(rubbish.status().message()), HasSubstr("ELF"));
}

TEST_F(SymbolExtractorTest, RefusesAFileOfAnotherExecutable) {
  const auto other = ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string_view("\x01\x02", 2));
  const auto extracted = Extract(OpenSelf(), {}, ForkExtractor, *other);
  EXPECT_EQ(extracted.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(extracted.status().message()), HasSubstr("id 0102 was expected"));
}

TEST_F(SymbolExtractorTest, LimitsMemory) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const auto extracted = Extract(OpenSelf(), {.memory_bytes_max = 1 << 20});
  EXPECT_EQ(extracted.status().code(), absl::StatusCode::kResourceExhausted) << extracted.status();
#endif
}

TEST_F(SymbolExtractorTest, ADeadProcessAffectsOnlyOneFile) {
  const auto extracted = Extract(OpenSelf(), {}, ForkAnd([](int) {
                                   signal(SIGSEGV, SIG_DFL);  // a sanitizer would report it and exit
                                   raise(SIGSEGV);
                                 }));
  EXPECT_EQ(extracted.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(extracted.status().message()), HasSubstr("signal 11"));
  EXPECT_EQ(Deaths(), 1u);
  EXPECT_TRUE(Extract(OpenSelf()).ok());
}

TEST_F(SymbolExtractorTest, KillsSlowProcesses) {
  const auto extracted = Extract(OpenSelf(), {.timeout_ms = 50}, ForkAnd([](int) { pause(); }));
  EXPECT_EQ(extracted.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Deaths(), 1u);
}

TEST_F(SymbolExtractorTest, RefusesFalseAnswers) {
  EXPECT_EQ(Extract(OpenSelf(), {}, ForkAnd([](int) {})).status().code(), absl::StatusCode::kInternal);
  auto answer_with = [](ExtractorAnswer answer) {
    return ForkAnd(
        [answer](int output) { EXPECT_EQ(write(output, &answer, sizeof(answer)), ssize_t{sizeof(answer)}); });
  };
  ExtractorAnswer answer;
  EXPECT_EQ(Extract(OpenSelf(), {}, answer_with(answer)).status().code(), absl::StatusCode::kInternal);  // no id
  answer.id_kind = 1;
  answer.id_bytes = UINT32_MAX;
  answer.encoded_bytes = uint64_t{1} << 50;
  EXPECT_EQ(Extract(OpenSelf(), {}, answer_with(answer)).status().code(), absl::StatusCode::kInternal);
  answer.code = 12345;
  answer.message_bytes = UINT32_MAX;
  EXPECT_EQ(Extract(OpenSelf(), {}, answer_with(answer)).status().code(), absl::StatusCode::kInternal);
}

TEST_F(SymbolExtractorTest, StopEndsRunningAndWaitingCalls) {
  SymbolExtractor extractor({}, ForkAnd([](int) { pause(); }), metrics_);
  const Fd self = OpenSelf();
  absl::Status first, second;
  std::thread running([&] { first = extractor.Extract({.file = self.get()}, {}).status(); });
  std::thread waiting([&] { second = extractor.Extract({.file = self.get()}, {}).status(); });
  extractor.Stop();
  running.join();
  waiting.join();
  EXPECT_EQ(first.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(second.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(extractor.Extract({.file = self.get()}, {}).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tributary
