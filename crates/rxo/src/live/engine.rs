//! The engine of a worker, for use without devices, for example in measurements.

use rxo_coalesce::{Config, Engine};
use rxo_driver::DeviceBuf;
use rxo_frame::{ConfigError, Frame, Instant};

/// An engine for frames of devices, to measure the cost of coalescing alone. It has no type parameter, so
/// that a measurement runs the compiled code that a worker runs.
#[derive(Debug)]
pub struct DeviceEngine {
    engine: Engine<DeviceBuf>,
    delivered: Vec<Frame<DeviceBuf>>,
}

impl DeviceEngine {
    /// Creates an engine for frames of devices. Allocates all its memory.
    ///
    /// # Errors
    /// If a number in the configuration is out of range.
    ///
    /// # Examples
    /// ```
    /// use rxo::live::DeviceEngine;
    /// use rxo::{Config, Frame, Instant, Policy};
    ///
    /// let mut engine = DeviceEngine::new(Config::new(Policy::linux_gro(), rxo::random_seed()))?;
    /// let mut batch = vec![Frame::new(vec![0; 60].into(), Instant::ZERO)];
    /// assert_eq!((engine.poll(&mut batch, Instant::ZERO), batch.len()), (1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        Ok(Self { engine: Engine::new(config)?, delivered: Vec::new() })
    }

    /// Coalesces `batch` at time `now`, and replaces the batch by the delivered frames. Returns the number of
    /// deliveries.
    pub fn poll(&mut self, batch: &mut Vec<Frame<DeviceBuf>>, now: Instant) -> usize {
        let (delivered, mut deliveries) = (&mut self.delivered, 0);
        self.engine.poll(batch, now, |some| {
            deliveries += some.iter().count();
            delivered.extend(some.into_frames());
        });
        std::mem::swap(batch, delivered);
        deliveries
    }
}
