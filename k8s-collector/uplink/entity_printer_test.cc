#include "k8s-collector/uplink/entity_printer.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tributary {
namespace {

TEST(EntityPrinter, PrintsEachChangeOnce) {
  FakeClock clock;
  Metrics metrics;
  intake::MetadataFeed feed({}, clock, metrics);
  char* text = nullptr;
  size_t size = 0;
  std::FILE* out = open_memstream(&text, &size);
  EntityPrinter printer(feed, out);
  feed.Set({.kind = EntityKind::kPod, .id = "u\n", .from = UnixNs{5}, .attributes = {{"k8s.pod.name", "a\"b"}}});
  printer.Print();
  feed.SetComplete();
  feed.Remove(EntityKind::kPod, "u\n", UnixNs{7});
  printer.Print();
  printer.Print();
  std::fclose(out);
  EXPECT_EQ(
      std::string(text, size),
      "{\"kind\":\"pod\",\"id\":\"u\\u000a\",\"from\":5,\"attributes\":{\"k8s.pod.name\":\"a\\\"b\"}}\n"
      "{\"kind\":\"pod\",\"id\":\"u\\u000a\",\"from\":7,\"gone\":true,\"attributes\":{\"k8s.pod.name\":\"a\\\"b\"}}\n"
      "{\"complete\":true}\n");
  std::free(text);
}

}  // namespace
}  // namespace tributary
