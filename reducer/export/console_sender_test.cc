#include "reducer/export/console_sender.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "reducer/export/records_text.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary {
namespace {

otlp::ProfilesRequest Request(size_t name_bytes) {
  otlp::ProfilesRequest request;
  auto* attribute = request.add_resource_profiles()->mutable_resource()->add_attributes();
  attribute->set_key("container.id");
  attribute->mutable_value()->set_string_value(std::string(name_bytes, 'x'));
  return request;
}

class ConsoleSenderTest : public ::testing::Test {
 protected:
  ConsoleSenderTest() {
    std::array<int, 2> ends;
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    reader_ = Fd(ends[0]);
    fcntl(reader_.get(), F_SETFL, O_NONBLOCK);
    writer_ = Fd(ends[1]);
  }
  std::string ReadAvailable() {
    std::string out(1 << 20, '\0');
    ssize_t n = read(reader_.get(), out.data(), out.size());
    out.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return out;
  }

  Fd reader_, writer_;
};

TEST_F(ConsoleSenderTest, PrintsARequestInItsLayout) {
  ConsoleSender sender(writer_.get(), {.layout = otlp::TextLayout::kCollector});
  EXPECT_TRUE(sender.Send(Request(3), {}, kNsPerSecond).status.ok());
  EXPECT_EQ(ReadAvailable(),
            "--------------- New Resource Profile --------------\n  container.id: xxx (Str)\n"
            "-------------- End Resource Profile ---------------\n\n");
}

TEST_F(ConsoleSenderTest, UsesTheSwitches) {
  ConsoleSender sender(writer_.get(), {.export_resource_attributes = false});
  EXPECT_TRUE(sender.Send(Request(3), {}, kNsPerSecond).status.ok());
  EXPECT_EQ(ReadAvailable(),
            "--------------- New Resource Profile --------------\n"
            "-------------- End Resource Profile ---------------\n\n");
}

TEST_F(ConsoleSenderTest, PrintsProcessEvents) {
  ConsoleSender sender(writer_.get(), {.layout = otlp::TextLayout::kCollector});
  const std::vector<store::EventRecord> events(2);
  EXPECT_TRUE(sender.SendEvents(events, {}, kNsPerSecond).status.ok());
  EXPECT_EQ(ReadAvailable(), FormatEvents(events));
}

TEST_F(ConsoleSenderTest, ContinuesWhereAStalledReaderStopped) {
  ConsoleSender sender(writer_.get(), {.layout = otlp::TextLayout::kCollector});
  otlp::ProfilesRequest request = Request(100'000);  // more than a pipe holds
  std::string text;
  int stalls = 0;
  for (;;) {
    otlp::SendResult result = sender.Send(request, {}, kNsPerMs);
    text += ReadAvailable();
    if (result.status.ok()) break;
    EXPECT_EQ(result.status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_TRUE(result.may_retry);
    ++stalls;
  }
  EXPECT_GT(stalls, 0);
  EXPECT_EQ(text, otlp::FormatProfiles(request, {.layout = otlp::TextLayout::kCollector}));
}

TEST_F(ConsoleSenderTest, PrintsAnotherRequestAsAWhole) {
  ConsoleSender sender(writer_.get(), {.layout = otlp::TextLayout::kCollector});
  EXPECT_FALSE(sender.Send(Request(100'000), {.first = 0}, kNsPerMs).status.ok());
  std::string text = ReadAvailable();
  EXPECT_FALSE(text.ends_with('\n'));
  EXPECT_TRUE(sender.Send(Request(3), {.first = 9}, kNsPerSecond).status.ok());
  EXPECT_EQ(ReadAvailable(), '\n' + otlp::FormatProfiles(Request(3), {.layout = otlp::TextLayout::kCollector}));
}

TEST_F(ConsoleSenderTest, ReportsSamplesThatDoNotFit) {
  otlp::ProfilesRequest request;
  auto* profile = request.add_resource_profiles()->add_scope_profiles()->add_profiles();
  for (int i = 0; i < 5; ++i) profile->add_samples()->add_timestamps_unix_nano(1);
  ConsoleSender sender(writer_.get(), {.text_bytes_max = 1});
  const otlp::SendResult result = sender.Send(request, {}, kNsPerSecond);
  EXPECT_TRUE(result.status.ok());
  EXPECT_EQ(result.left_out_samples, 5u);
  EXPECT_FALSE(result.message.empty());
}

TEST_F(ConsoleSenderTest, ACancelEndsTheWaitForAReader) {
  ConsoleSender sender(writer_.get(), {.layout = otlp::TextLayout::kCollector});
  std::thread stopper([&] { sender.Cancel(); });
  otlp::SendResult result = sender.Send(Request(100'000), {}, 60 * kNsPerSecond);
  stopper.join();
  EXPECT_EQ(result.status.code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(result.may_retry);
}

TEST_F(ConsoleSenderTest, AGoneReaderIsARetryableError) {
  signal(SIGPIPE, SIG_IGN);
  reader_.Reset();
  ConsoleSender sender(writer_.get(), {.layout = otlp::TextLayout::kCollector});
  otlp::SendResult result = sender.Send(Request(3), {}, kNsPerSecond);
  EXPECT_FALSE(result.status.ok());
  EXPECT_TRUE(result.may_retry);
}

}  // namespace
}  // namespace tributary
