#include "otlp/request_arena.h"

#include <memory>

namespace tributary::otlp {
namespace {

constexpr size_t kFirstBlockBytes = 16u << 10, kBlockBytesMax = 256u << 10;

}  // namespace

void DeleteRequest::operator()(ProfilesRequest* request) const {
  google::protobuf::Arena* arena = request->GetArena();
  if (arena == nullptr) {
    delete request;
  } else {
    delete arena;
  }
}

ProfilesRequestPtr NewArenaRequest() {
  google::protobuf::ArenaOptions options;
  options.start_block_size = kFirstBlockBytes;
  options.max_block_size = kBlockBytesMax;
  auto arena = std::make_unique<google::protobuf::Arena>(options);
  return ProfilesRequestPtr(google::protobuf::Arena::CreateMessage<ProfilesRequest>(arena.release()));
}

}  // namespace tributary::otlp
