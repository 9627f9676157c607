#include "kernel-collector/direct/request_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/little_endian.h"
#include "schemas/otlp/logs_service.pb.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary {
namespace {

DirectRequest Samples() {
  DirectRequest request;
  request.samples.reset(new otlp::ProfilesRequest);
  request.samples->mutable_dictionary()->add_string_table("main");
  request.identity = {.sender = "node-1", .session = {1, 2, 3}, .first = 700};
  request.counts = SampleCounts(12);
  request.counts.Add(SampleType::kOffCpu, 5);
  request.dropped_strings = 3;
  return request;
}

DirectRequest Events() {
  DirectRequest request;
  request.events.reset(new otlp::LogsRequest);
  request.events->add_resource_logs()->set_schema_url("x");
  request.identity = {.sender = "node-1", .session = {1, 2, 4}, .first = 7};
  request.counts.AddEvents(9);
  request.in_doubt = true;
  return request;
}

absl::StatusOr<std::string> Encode(RequestId id, const DirectRequest& request) {
  otlp::GzipCompressor gzip;
  return EncodeRequest(id, request, gzip);
}

TEST(RequestFile, KeepsARequest) {
  const absl::StatusOr<std::string> file = Encode(8, Samples());
  ASSERT_TRUE(file.ok()) << file.status();
  absl::StatusOr<DirectRequest> request = DecodeRequest(8, *file);
  ASSERT_TRUE(request.ok()) << request.status();
  ASSERT_NE(request->samples, nullptr);
  EXPECT_EQ(request->events, nullptr);
  EXPECT_EQ(request->samples->SerializeAsString(), Samples().samples->SerializeAsString());
  EXPECT_EQ(request->identity, Samples().identity);
  EXPECT_EQ(request->counts, Samples().counts);
  EXPECT_EQ(request->dropped_strings, 3u);
  EXPECT_FALSE(request->in_doubt);

  request = DecodeRequest(9, *Encode(9, Events()));
  ASSERT_TRUE(request.ok()) << request.status();
  ASSERT_NE(request->events, nullptr);
  EXPECT_EQ(request->events->SerializeAsString(), Events().events->SerializeAsString());
  EXPECT_EQ(request->identity, Events().identity);
  EXPECT_EQ(request->counts.events(), 9u);
  EXPECT_TRUE(request->in_doubt);
}

// No checksum covers the mark, because it changes.
TEST(RequestFile, HasAMarkThatChanges) {
  std::string file = *Encode(8, Samples());
  file.replace(kRequestMarkOffset, 1, RequestMark(true));
  EXPECT_TRUE(DecodeRequest(8, file)->in_doubt);
  EXPECT_TRUE(DecodeRequestHeader(8, file, file.size())->in_doubt);
  file.replace(kRequestMarkOffset, 1, RequestMark(false));
  EXPECT_FALSE(DecodeRequest(8, file)->in_doubt);
}

TEST(RequestFile, NoticesEachDamagedByte) {
  const std::string whole = *Encode(8, Samples());
  const size_t body = DecodeRequestHeader(8, whole, whole.size())->body_offset;
  for (size_t at = 0; at < whole.size(); ++at) {
    if (at >= kRequestMarkOffset && at < kRequestPrefixBytes) continue;
    std::string file = whole;
    file[at] = static_cast<char>(file[at] ^ 0x10);
    EXPECT_EQ(DecodeRequest(8, file).status().code(), absl::StatusCode::kInvalidArgument) << at;
    const absl::StatusOr<RequestHeader> header = DecodeRequestHeader(8, file, file.size());
    EXPECT_EQ(header.ok(), at >= body) << at;
  }
}

TEST(RequestFile, NoticesACutFile) {
  const std::string whole = *Encode(8, Samples());
  const size_t body = DecodeRequestHeader(8, whole, whole.size())->body_offset;
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string_view file = std::string_view(whole).substr(0, size);
    EXPECT_FALSE(DecodeRequest(8, file).ok()) << size;
    EXPECT_EQ(DecodeRequestHeader(8, file, file.size()).ok(), size >= body) << size;
  }
  EXPECT_EQ(DecodeRequestHeader(8, std::string_view(whole).substr(0, body), body)->counts, Samples().counts);
  EXPECT_FALSE(DecodeRequest(8, whole + "x").ok());
  EXPECT_TRUE(DecodeRequestHeader(8, whole, whole.size())->is_whole);
  EXPECT_FALSE(DecodeRequestHeader(8, whole, whole.size() + 1)->is_whole);
  // The header is enough.
  EXPECT_TRUE(DecodeRequestHeader(8, std::string_view(whole).substr(0, body), whole.size())->is_whole);
}

TEST(RequestFile, RefusesTheContentOfAnotherFile) { EXPECT_FALSE(DecodeRequest(9, *Encode(8, Samples())).ok()); }

// Files of version 1 can be read for ever. UPDATE_GOLDEN=1 writes files that do not exist.
TEST(RequestFile, ReadsTheGoldenFiles) {
  for (const bool has_events : {false, true}) {
    const DirectRequest expected = has_events ? Events() : Samples();
    const std::string path = std::string(TRIBUTARY_SOURCE_DIR) + "/test/fuzz/corpus/request_file_fuzz/" +
                             (has_events ? "events" : "samples");
    if (std::getenv("UPDATE_GOLDEN") != nullptr && !std::ifstream(path)) std::ofstream(path) << *Encode(1, expected);
    std::ostringstream file;
    file << std::ifstream(path).rdbuf();
    const absl::StatusOr<DirectRequest> request = DecodeRequest(1, file.str());
    ASSERT_TRUE(request.ok()) << path << ": " << request.status();
    EXPECT_EQ(request->events != nullptr, has_events);
    EXPECT_EQ(request->identity, expected.identity);
    EXPECT_EQ(request->counts, expected.counts);
    EXPECT_EQ(request->dropped_strings, expected.dropped_strings);
    EXPECT_EQ(request->in_doubt, expected.in_doubt);
    if (has_events) {
      EXPECT_EQ(request->events->SerializeAsString(), expected.events->SerializeAsString());
    } else {
      EXPECT_EQ(request->samples->SerializeAsString(), expected.samples->SerializeAsString());
    }
  }
}

TEST(RequestFile, HasANameWithItsId) {
  EXPECT_EQ(RequestName(0xa1), "request-00000000000000a1.trq");
  EXPECT_EQ(ParseRequestName("request-00000000000000a1.trq"), 0xa1u);
  for (const char* name :
       {"request-00000000000000A1.trq", "request-a1.trq", "segment-00000000000000a1.trs", "LOCK", "",
        "request-00000000000000a1.trq~", "request-ffffffffffffffff.trq", "request- 0000000000000a1.trq"}) {
    EXPECT_FALSE(ParseRequestName(name)) << name;
  }
}

}  // namespace
}  // namespace tributary
