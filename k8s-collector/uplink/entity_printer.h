#pragma once

#include <cstdio>
#include <string>

#include "intake/metadata/metadata_feed.h"

namespace tributary {

// Writes the data that a reducer would receive, as JSON lines: {"kind": …, "id": …, "from": …, "attributes": {…}}, with
// "gone": true for an entity that ended at `from`, and {"complete": true} at the end of a snapshot. On the feed's
// thread.
class EntityPrinter {
 public:
  EntityPrinter(intake::MetadataFeed& feed, std::FILE* out) : feed_(feed), out_(out) {}
  void Print();  // prints the changes since the last call

 private:
  intake::MetadataFeed& feed_;
  std::FILE* const out_;
  intake::MetadataFeed::Cursor cursor_;
};

std::string EntityLine(const Entity& entity);

}  // namespace tributary
