//! Puts plain segments into frames, as an engine delivers them.

use rxo_frame::Frame;
use rxo_tcp::{PlainSegments, Segment, SegmentOptions};
use rxo_wire::build::{Ipv4Header, TcpHeader, timestamp_option};
use rxo_wire::parse_ip;

/// A run: frames of one header layout, in order.
pub(crate) type Run = PlainSegments<std::vec::IntoIter<Frame<Vec<u8>>>>;

/// Returns the run of `segments`, the first `alike` of which are alike. `None` if one has no text or has
/// options besides timestamps, or if the header layouts differ.
pub(crate) fn run(segments: &[Segment<Vec<u8>>], alike: usize) -> Option<Run> {
    let has_timestamp = segments.first()?.options.timestamp.is_some();
    let is_of_shape = |segment: &Segment<_>| {
        let timestamp = segment.options.timestamp;
        let is_plain = segment.options == SegmentOptions { timestamp, ..SegmentOptions::default() };
        is_plain && timestamp.is_some() == has_timestamp && segment.payload.is_some()
    };
    if !segments.iter().all(is_of_shape) {
        return None;
    }
    let frames: Vec<_> = segments.iter().map(frame).collect();
    let at = parse_ip(&frames.first()?.bytes).expect("a packet").at;
    Some(PlainSegments::new(frames.into_iter(), at, alike))
}

fn frame(segment: &Segment<Vec<u8>>) -> Frame<Vec<u8>> {
    let (buffer, range) = segment.payload.clone().expect("text").into_parts();
    let text = &buffer[range];
    let options = segment.options.timestamp.map(timestamp_option);
    let tcp = TcpHeader {
        seq: segment.seq,
        ack: segment.ack,
        flags: segment.flags,
        window: segment.window,
        options: options.as_ref().map_or(&[], |option| option),
        ..TcpHeader::default()
    };
    let payload_bytes = tcp.bytes() + text.len();
    let traffic_class = segment.ecn.bits();
    let ip = Ipv4Header { protocol: 6, traffic_class, payload_bytes, ..Ipv4Header::default() };
    let mut bytes = vec![0; IP_BYTES + payload_bytes];
    let rest = ip.write(&mut bytes).and_then(|rest| tcp.write(rest)).expect("room");
    rest.copy_from_slice(text);
    Frame::new(bytes, segment.arrived_at)
}

const IP_BYTES: usize = 20;
