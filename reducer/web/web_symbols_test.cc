#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "reducer/web/web_server_testing.h"
#include "symbols/table_file.h"

// Uploads and deletions of symbol tables, and the lines of functions.

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A table of the executable in the store's samples.
std::string TruthTable(SymbolSource source = SymbolSource::kSymtab) {
  const uint8_t id[] = {0xab, 0xcd};
  const auto table = BuildSymbolTable(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::span<const uint8_t>(id)),
                                      source, {{0x18, 0x10, "leaf"}});
  const std::string encoded = EncodeSymbolTable(*table);
  return PackTableFile(DescribeTable(*table, encoded), encoded, 1);
}

TEST_F(WebServerTest, AnUploadNamesEarlierSamples) {
  Start();
  EXPECT_THAT(
      Get("/api/v1/symbols?from=-10s").body,
      HasSubstr(
          R"({"type":"cpu","unit":"nanoseconds","total":{"ns":1500000,"count":2},"executables":[{"build_id":"abcd",)"
          R"("name":"\u003cb\u003etruth\u0026","path":"/opt/\u003cb\u003etruth\u0026",)"
          R"("self_ns":1500000,"self_count":2,"total_ns":1500000,"total_count":2,)"
          R"("addresses":2,"unnamed_addresses":2,"symbols":null})"));
  httplib::Result put = Client().Put("/api/v1/symbols", TruthTable(), "application/octet-stream");
  ASSERT_TRUE(put) << to_string(put.error());
  EXPECT_EQ(put->status, 201);
  EXPECT_THAT(put->body, AllOf(HasSubstr(R"("build_id":"abcd","stored":true,"symbols":{"source":"symtab")"),
                               HasSubstr(R"("origin":"upload","functions":1)")));
  EXPECT_THAT(Get("/api/v1/symbols?from=-10s").body, HasSubstr(R"("addresses":2,"unnamed_addresses":1,"symbols":{)"));
  EXPECT_THAT(Get("/api/v1/flamegraph?from=-10s").body, HasSubstr(R"("leaf")"));
  // A second upload of the same table changes nothing.
  put = Client().Put("/api/v1/symbols?build-id=abcd", TruthTable(), "application/octet-stream");
  ASSERT_TRUE(put);
  EXPECT_EQ(put->status, 200);
  EXPECT_THAT(put->body, HasSubstr(R"("stored":false)"));
}

TEST_F(WebServerTest, RefusesAndListsInvalidUploads) {
  Start({.upload_bytes_max = 100'000});
  auto put = [&](const std::string& path, const std::string& body) {
    httplib::Result result = Client().Put(path, body, "application/octet-stream");
    EXPECT_TRUE(result) << to_string(result.error());
    return result ? *result : httplib::Response();
  };
  EXPECT_EQ(put("/api/v1/symbols", "hello").status, 400);
  EXPECT_EQ(put("/api/v1/symbols", "").status, 400);
  EXPECT_EQ(put("/api/v1/symbols?build-id=nonsense", TruthTable()).status, 400);
  EXPECT_EQ(put("/api/v1/symbols?build-id=0123", TruthTable()).status, 400);
  EXPECT_EQ(put("/api/v1/symbols", std::string(100'001, 'x')).status, 413);
  EXPECT_EQ(put("/api/v1/top", TruthTable()).status, 405);
  EXPECT_EQ(put("/", TruthTable()).status, 405);
  EXPECT_THAT(Get("/api/v1/symbols").body,
              AllOf(HasSubstr("the file is the symbol table of abcd, not of 0123"), HasSubstr("neither an ELF file")));
  EXPECT_EQ(Client().Post("/api/v1/symbols", TruthTable(), "application/octet-stream")->status, 405);
  // The server does not have this name: a page from elsewhere must not be able to send anything to it.
  EXPECT_EQ(
      Client().Put("/api/v1/symbols", {{"Host", "evil.example"}}, TruthTable(), "application/octet-stream")->status,
      403);
}

TEST_F(WebServerTest, DeletesASymbolTable) {
  Start();
  ASSERT_EQ(Client().Put("/api/v1/symbols", TruthTable(), "application/octet-stream")->status, 201);
  EXPECT_THAT(Get("/api/v1/symbols?from=-10s").body,
              HasSubstr(R"("contested":false,"origin_rank":5,"nodes":[],"disputed_by":[]})"));
  EXPECT_EQ(Client().Delete("/api/v1/symbols")->status, 400);
  EXPECT_EQ(Client().Delete("/api/v1/symbols?build-id=nonsense")->status, 400);
  EXPECT_EQ(Client().Delete("/api/v1/symbols?build-id=0123")->status, 404);
  EXPECT_EQ(Client().Delete("/api/v1/top?build-id=abcd")->status, 405);
  // A page from elsewhere must not be able to delete anything.
  EXPECT_EQ(Client().Delete("/api/v1/symbols?build-id=abcd", {{"Host", "evil.example"}})->status, 403);
  EXPECT_EQ(Client().Options("/api/v1/symbols")->status, 405) << "the question of a browser before a DELETE";
  EXPECT_NE(symbols_->Get(*ExecutableId::FromString("abcd")), nullptr);
  const httplib::Result deleted = Client().Delete("/api/v1/symbols?build-id=abcd");
  EXPECT_EQ(deleted->status, 200);
  EXPECT_EQ(deleted->body, R"({"build_id":"abcd","deleted":true})");
  EXPECT_THAT(Get("/api/v1/symbols?from=-10s").body, HasSubstr(R"("symbols":null)"));
  EXPECT_EQ(Client().Delete("/api/v1/symbols?build-id=abcd")->status, 404);
}

TEST_F(WebServerTest, ABrokenUploadEndsOnlyItself) {
  Start();
  EXPECT_THAT(Raw("PUT /api/v1/symbols HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello"),
              HasSubstr("HTTP/1.1 400"));
  EXPECT_THAT(Raw("PUT /api/v1/symbols HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "5\r\nhello\r\n0\r\n\r\n"),
              HasSubstr("HTTP/1.1 400"));
  EXPECT_THAT(Raw("PUT /api/v1/symbols HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
              HasSubstr("HTTP/1.1 400"));
  EXPECT_EQ(Get("/healthz").status, 200);
}

TEST_F(WebServerTest, LinesOfAFunctionWithTheirText) {
  PutTableWithLines();
  std::filesystem::create_directories(source_directory_.path() + "/src");
  std::ofstream(source_directory_.path() + "/src/truth.c") << "a\nint main() {\n  step(<x>);\n}\n";
  Start();
  // The inner sample is in step, which is inlined into main at line 3. The outer sample is in main at line 2.
  EXPECT_EQ(
      Get("/api/v1/lines?from=-10s&function=main").body,
      R"({"type":"cpu","unit":"nanoseconds","function":"main","executable":"","lines":[)"
      R"({"file":"/build/src/truth.c","line":2,"text":"int main() {","self_ns":500000,"self_count":1,)"
      R"("total_ns":500000,"total_count":1,"addresses":[{"build_id":"abcd","address":"0x10","ns":500000,"count":1}]},)"
      R"({"file":"/build/src/truth.c","line":3,"text":"  step(\u003cx\u003e);","self_ns":0,"self_count":0,)"
      R"("total_ns":1000000,"total_count":1,"addresses":[{"build_id":"abcd","address":"0x20","ns":1000000,"count":1}]}],)"
      R"("sources":[{"file":"/build/src/truth.c","first_line":1,"text":["a","int main() {","  step(\u003cx\u003e);","}"]}],"sources_coming":[]})");
  EXPECT_THAT(Get("/api/v1/lines?from=-10s&function=step").body,
              HasSubstr(R"("line":7,"text":null,"self_ns":1000000)"));
  EXPECT_THAT(Get("/api/v1/lines?from=-10s&function=main&executable=other").body, HasSubstr(R"("lines":[])"));
  EXPECT_EQ(Get("/api/v1/lines?from=-10s").status, 400);
}

TEST_F(WebServerTest, FetchesMissingTextMeanwhile) {
  PutTableWithLines();
  at_server_ = "a\nint main() {\n  step();\n}\n";
  Start();
  const std::string coming = Get("/api/v1/lines?from=-10s&function=main").body;
  EXPECT_THAT(coming, HasSubstr(R"("line":2,"text":null)"));
  EXPECT_THAT(coming, HasSubstr(R"("sources":[],"sources_coming":["/build/src/truth.c"])"));
  fetched_sources_.FetchWaiting();
  const std::string here = Get("/api/v1/lines?from=-10s&function=main").body;
  EXPECT_THAT(here, HasSubstr(R"("line":2,"text":"int main() {")"));
  EXPECT_THAT(here, HasSubstr(R"("sources_coming":[])"));
}

TEST_F(WebServerTest, DoesNotWaitForTextThatNoServerHas) {
  PutTableWithLines();
  Start();
  Get("/api/v1/lines?from=-10s&function=main");
  fetched_sources_.FetchWaiting();
  EXPECT_THAT(Get("/api/v1/lines?from=-10s&function=main").body, HasSubstr(R"("sources":[],"sources_coming":[])"));
}

}  // namespace
}  // namespace tributary
