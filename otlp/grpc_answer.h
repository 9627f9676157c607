#pragma once

#include "otlp/post_answer.h"
#include "otlp/transport.h"

namespace google::protobuf {
class Message;
}

namespace tributary::otlp {

// Applies the rules of gRPC over HTTP/2 for the answer to a unary call (doc/PROTOCOL-HTTP2.md and
// doc/http-grpc-status-mapping.md in the repository of gRPC), and the rules of OTLP over gRPC:
// - grpc-status is 0: the request is accepted. Sets `*response` from the only message of the body. If the body is not
//   exactly one such message, returns Internal, because the sender cannot know what the receiver did with the request.
//   It may not be sent again.
// - grpc-status is another number: the request is refused with this code, and with the text of grpc-message.
//   IsRetryable says if the request may be sent again. The delay is that of the RetryInfo in grpc-status-details-bin.
// - There is no grpc-status, for example because a proxy answered: the code follows from the status of HTTP.
// A refusal is in doubt if it may come from a proxy whose receiver has the request, or from a receiver that did not
// finish in time: the codes Cancelled, DeadlineExceeded, Unavailable and DataLoss, and the statuses 502 and 504 of HTTP
// without a grpc-status.
// The message of the result contains at most 1 KiB of the receiver's text. grpc-status and the fields about it are in
// the trailers. If there are none, they are in the headers ("Trailers-Only").
CallResult ReadGrpcAnswer(const PostAnswer& answer, google::protobuf::Message* response);

// Returns true if the start of an answer decides the result of the call, so that its end does not matter: the status of
// HTTP is not 200, there is a grpc-status other than 0, or the body is too long for an answer.
bool DecidesGrpcCall(const PostAnswer& answer);

}  // namespace tributary::otlp
