//! The packets of a capture as a stream of tables with equal columns: a row for each packet.
//!
//! A capture may be larger than memory, so it is read only as far as the caller requests tables.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, StringBuilder, TimestampNanosecondBuilder, UInt8Builder,
    UInt16Builder, UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Schema, SchemaRef};
use rxo_capture::{Capture, CaptureError, Direction, LinkType, Record};

use crate::study::{Headers, UNKNOWN_LINK};

/// The maximum number of rows of a table.
const MOST_ROWS: usize = 65_536;
/// The number of captured bytes after which a table ends. The limit bounds memory, because readers keep several
/// tables, and ensures that offsets of 32 bits are enough.
const ENOUGH_BYTES: usize = 16 << 20;
/// The number of records that are read between two checks of the table's size. A record may have 16 MiB, and a
/// table must stay below the 2 GiB that offsets of 32 bits can address.
const BATCH_RECORDS: usize = 16;

/// The packets of a capture, as tables of up to 65,536 rows. See [`schema`](Self::schema) for the columns.
///
/// # Examples
/// ```no_run
/// use rxo_capture::Capture;
/// use rxo_trace::tables::Packets;
///
/// let mut packets = Packets::new(Capture::open("trace.pcapng".as_ref())?);
/// while let Some(table) = packets.next_table()? {
///     println!("{} packets", table?.num_rows());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Packets {
    capture: Capture,
    records: Vec<Record>,
    columns: Columns,
    /// The error that is returned after the last table; `None` if there was no error.
    failed: Option<CaptureError>,
}

impl Packets {
    /// Begins to read the packets of `capture`.
    #[must_use]
    pub fn new(capture: Capture) -> Self {
        let records = Vec::with_capacity(BATCH_RECORDS);
        Self { capture, records, columns: Columns::default(), failed: None }
    }

    /// Returns the columns of the tables.
    ///
    /// Times are in UTC. `is_sent` is true if the capturing host sent the packet, and null if the capture does
    /// not state the direction. Columns of header fields are null for packets without this header. `data`
    /// contains the captured bytes from the first link-layer byte.
    #[must_use]
    pub fn schema() -> SchemaRef {
        let empty = Columns::default().finish();
        empty.map_or_else(|_| Arc::new(Schema::empty()), |table| table.schema())
    }

    /// Returns the next table; `None` at the end of the capture. Allocates the table.
    ///
    /// # Errors
    /// Returns the outer error if the capture is damaged; earlier calls have returned all packets before the
    /// damage. Returns the inner error, of [`Table`](super::Table), only if this crate has a bug.
    pub fn next_table(&mut self) -> Result<Option<super::Table>, CaptureError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        while self.columns.rows < MOST_ROWS && self.columns.data_bytes < ENOUGH_BYTES {
            match self.capture.read_batch(&mut self.records, BATCH_RECORDS) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
            let interfaces = self.capture.interfaces();
            for record in self.records.drain(..) {
                let interface = interfaces.get(record.interface as usize);
                let link = interface.map_or(UNKNOWN_LINK, |interface| interface.link);
                self.columns.add(&record, link);
            }
        }
        if self.columns.rows > 0 {
            return Ok(Some(self.columns.finish()));
        }
        self.failed.take().map_or(Ok(None), Err)
    }
}

/// The columns of the table that is being built.
#[derive(Debug, Default)]
struct Columns {
    rows: usize,
    data_bytes: usize,
    at: TimestampNanosecondBuilder,
    interface: UInt32Builder,
    is_sent: BooleanBuilder,
    wire_bytes: UInt64Builder,
    vlan: UInt16Builder,
    source: Side,
    destination: Side,
    protocol: StringBuilder,
    payload_bytes: UInt32Builder,
    seq: UInt32Builder,
    ack: UInt32Builder,
    flags: UInt8Builder,
    window: UInt16Builder,
    data: BinaryBuilder,
}

impl Columns {
    #[inline]
    fn add(&mut self, record: &Record, link: LinkType) {
        let headers = Headers::read(record, link);
        let bytes = record.bytes.as_ref();
        self.rows += 1;
        self.data_bytes += bytes.len();
        self.at.append_value(i64::try_from(record.at.as_nanos()).unwrap_or(i64::MAX));
        self.interface.append_value(record.interface);
        let direction = record.direction(link);
        self.is_sent.append_option(direction.map(|direction| direction == Direction::Out));
        self.wire_bytes.append_value(headers.wire_bytes);
        self.vlan.append_option(headers.vlan);
        let key = headers.key.as_ref();
        let ports = headers.protocol.and(key);
        self.source.add(key.map(|key| key.source()), ports.map(|key| key.source_port()));
        self.destination
            .add(key.map(|key| key.destination()), ports.map(|key| key.destination_port()));
        self.protocol.append_option(headers.protocol.map(|protocol| protocol.name()));
        self.payload_bytes.append_option(headers.payload_bytes);
        self.seq.append_option(headers.tcp.map(|tcp| tcp.seq));
        self.ack.append_option(headers.tcp.map(|tcp| tcp.ack));
        self.flags.append_option(headers.tcp.map(|tcp| tcp.flags));
        self.window.append_option(headers.tcp.map(|tcp| tcp.window));
        self.data.append_value(bytes);
    }

    /// Returns the table of the rows that were added, and begins the next one.
    fn finish(&mut self) -> super::Table {
        (self.rows, self.data_bytes) = (0, 0);
        let at = self.at.finish().with_timezone("UTC");
        let columns: [(&str, ArrayRef, bool); 16] = [
            ("at", Arc::new(at), false),
            ("interface", Arc::new(self.interface.finish()), false),
            ("is_sent", Arc::new(self.is_sent.finish()), true),
            ("wire_bytes", Arc::new(self.wire_bytes.finish()), false),
            ("vlan", Arc::new(self.vlan.finish()), true),
            ("source_address", Arc::new(self.source.addresses.finish()), true),
            ("source_port", Arc::new(self.source.ports.finish()), true),
            ("destination_address", Arc::new(self.destination.addresses.finish()), true),
            ("destination_port", Arc::new(self.destination.ports.finish()), true),
            ("protocol", Arc::new(self.protocol.finish()), true),
            ("payload_bytes", Arc::new(self.payload_bytes.finish()), true),
            ("tcp_seq", Arc::new(self.seq.finish()), true),
            ("tcp_ack", Arc::new(self.ack.finish()), true),
            ("tcp_flags", Arc::new(self.flags.finish()), true),
            ("tcp_window", Arc::new(self.window.finish()), true),
            ("data", Arc::new(self.data.finish()), false),
        ];
        RecordBatch::try_from_iter_with_nullable(columns)
    }
}

/// The addresses and ports of one side. Neighbouring packets often have the same address, so the formatted last
/// address is kept for reuse.
#[derive(Debug, Default)]
struct Side {
    addresses: StringBuilder,
    ports: UInt16Builder,
    last: Option<IpAddr>,
    text: String,
}

impl Side {
    #[inline]
    fn add(&mut self, address: Option<IpAddr>, port: Option<u16>) {
        self.ports.append_option(port);
        let Some(address) = address else { return self.addresses.append_null() };
        if self.last != Some(address) {
            self.last = Some(address);
            self.text.clear();
            // Writing to a string cannot fail.
            _ = write!(self.text, "{address}");
        }
        self.addresses.append_value(&self.text);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use arrow_array::cast::AsArray;
    use arrow_array::types::{UInt8Type, UInt16Type, UInt32Type};
    use rxo_capture::{CaptureWriter, Interface, Packet};
    use rxo_frame::Instant;
    use rxo_testkit::seg;

    use super::*;

    fn capture(packets: &[Vec<u8>]) -> Vec<u8> {
        let mut writer = CaptureWriter::new(Vec::new(), "a test").unwrap();
        let ethernet = Interface { link: LinkType::ETHERNET, snap_bytes: None, name: None };
        let interface = writer.add_interface(&ethernet).unwrap();
        for (number, packet) in (0..).zip(packets) {
            let pieces = &[packet.as_slice()][..];
            let (at, original_bytes) = (Instant::from_micros(number), packet.len() as u32);
            let (direction, comments, custom) = (None, &[][..], &[][..]);
            writer
                .write(&Packet {
                    interface,
                    at,
                    original_bytes,
                    pieces,
                    direction,
                    comments,
                    custom,
                })
                .unwrap();
        }
        writer.finish().unwrap()
    }

    fn read(capture: Vec<u8>) -> Packets {
        Packets::new(Capture::from_reader("test", Box::new(Cursor::new(capture))).unwrap())
    }

    #[test]
    fn a_row_has_the_headers_and_the_bytes_of_its_packet() {
        let packets = vec![seg().seq(7).len(100).psh().bytes(), vec![0xff; 60]];
        let mut reader = read(capture(&packets));
        let table = reader.next_table().unwrap().unwrap().unwrap();
        let column = |name: &str| table.column_by_name(name).unwrap();
        assert_eq!(table.num_rows(), 2);
        assert_eq!(column("tcp_seq").as_primitive::<UInt32Type>().value(0), 7);
        assert_eq!(column("tcp_flags").as_primitive::<UInt8Type>().value(0), 0x18);
        assert_eq!(column("payload_bytes").as_primitive::<UInt32Type>().value(0), 100);
        assert_ne!(column("source_port").as_primitive::<UInt16Type>().value(0), 0);
        assert!(column("source_address").as_string::<i32>().value(0).contains('.'));
        assert_eq!(column("protocol").as_string::<i32>().value(0), "tcp");
        for name in ["source_address", "source_port", "protocol", "tcp_seq", "payload_bytes"] {
            assert!(column(name).is_null(1), "{name} of a packet that is not IP");
        }
        let data = column("data").as_binary::<i32>();
        assert_eq!([data.value(0), data.value(1)], [&packets[0][..], &packets[1][..]]);
        assert!(reader.next_table().unwrap().is_none());
    }

    #[test]
    fn what_stands_before_the_damage_comes_before_the_error() {
        let mut bytes = capture(&vec![seg().len(100).bytes(); 3]);
        bytes.truncate(bytes.len() - 20);
        let mut reader = read(bytes);
        assert_eq!(reader.next_table().unwrap().unwrap().unwrap().num_rows(), 2);
        assert!(reader.next_table().unwrap_err().to_string().contains("ends too early"));
        assert!(reader.next_table().unwrap().is_none());
    }
}
